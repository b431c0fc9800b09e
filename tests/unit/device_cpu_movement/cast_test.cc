// Cast between all types, float16 and bfloat16 bit by bit.
#include <cmath>
#include <limits>

#include "runtime/device/cpu/kernels/typed.h"
#include "tests/unit/device_cpu_movement/kernel_case.h"

namespace pipec {
namespace {

using cpu::kDType;

template <typename To, typename From>
std::vector<To> Cast(DType from, DType to, const std::vector<From>& x) {
  const Shape shape = {static_cast<int64_t>(x.size())};
  KernelCase call("Cast");
  call.Attr("to", static_cast<int64_t>(to)).In(Values(from, shape, x)).Out(to, shape);
  if (sizeof(To) == sizeof(From)) call.MayLieAt(0);
  return call.template Get<To>();
}

template <typename From, typename To>
void CheckPair() {
  std::mt19937 random(5);
  const std::vector<From> x = RandomValues<From>(300, random, -100, 100);
  std::vector<To> wanted;
  for (From value : x)
    wanted.push_back(static_cast<To>(static_cast<long double>(value) < 0 && std::is_unsigned_v<To> &&
                                             std::is_floating_point_v<From>
                                         ? From{0}
                                         : value));
  EXPECT_EQ((Cast<To, From>(kDType<From>, kDType<To>, x)), wanted)
      << Name(kDType<From>) << " to " << Name(kDType<To>);
}

template <typename From>
void CheckFrom() {
  CheckPair<From, float>();
  CheckPair<From, double>();
  CheckPair<From, int8_t>();
  CheckPair<From, int16_t>();
  CheckPair<From, int32_t>();
  CheckPair<From, int64_t>();
  CheckPair<From, uint8_t>();
  CheckPair<From, uint16_t>();
  CheckPair<From, uint32_t>();
  CheckPair<From, uint64_t>();
}

TEST(Cast, AllPairsOfNumbers) {
  CheckFrom<float>();
  CheckFrom<double>();
  CheckFrom<int8_t>();
  CheckFrom<int16_t>();
  CheckFrom<int32_t>();
  CheckFrom<int64_t>();
  CheckFrom<uint8_t>();
  CheckFrom<uint16_t>();
  CheckFrom<uint32_t>();
  CheckFrom<uint64_t>();
}

TEST(Cast, Bool) {
  const std::vector<float> x = {0, -0.0f, 0.25f, -3, std::nanf("")};
  EXPECT_THAT((Cast<uint8_t, float>(DType::kFloat32, DType::kBool, x)),
              ::testing::ElementsAre(0, 0, 1, 1, 1));
  EXPECT_THAT((Cast<uint8_t, int64_t>(DType::kInt64, DType::kBool, {0, 256})), ::testing::ElementsAre(0, 1));
  EXPECT_THAT((Cast<float, uint8_t>(DType::kBool, DType::kFloat32, {0, 1})), ::testing::ElementsAre(0, 1));
}

TEST(Cast, FloatsAreHeldToTheIntegersRange) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT((Cast<int32_t, double>(DType::kFloat64, DType::kInt32,
                                     {3e9, -3e9, infinity, -infinity, std::nan(""), -1.9})),
              ::testing::ElementsAre(INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0, -1));
  EXPECT_THAT((Cast<int64_t, float>(DType::kFloat32, DType::kInt64, {9.3e18f, -9.3e18f, 1.5f})),
              ::testing::ElementsAre(INT64_MAX, INT64_MIN, 1));
  EXPECT_THAT((Cast<uint8_t, float>(DType::kFloat32, DType::kUint8, {256, 255.9f, -1, 300})),
              ::testing::ElementsAre(255, 255, 0, 255));
}

// The value of a float of 16 bits, by the definition.
double Decode(uint16_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits & 0x7fff) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

TEST(Cast, EveryFloatOf16Bits) {
  std::vector<uint16_t> all(65536);
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  for (const auto& [dtype, exponent_bits] : {std::pair(DType::kFloat16, 5), std::pair(DType::kBFloat16, 8)}) {
    const auto wide = Cast<double, uint16_t>(dtype, DType::kFloat64, all);
    const auto single = Cast<float, uint16_t>(dtype, DType::kFloat32, all);
    const auto back = Cast<uint16_t, float>(DType::kFloat32, dtype, single);
    for (int i = 0; i < 65536; ++i) {
      const double wanted = Decode(all[i], exponent_bits);
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(wide[i]) && std::isnan(single[i]) &&
                    std::isnan(Decode(back[i], exponent_bits)))
            << i;
      } else {
        ASSERT_EQ(wide[i], wanted) << i;
        ASSERT_EQ(single[i], wanted) << i;
        ASSERT_EQ(back[i], all[i]);
      }
    }
  }
}

// Between two neighbours the nearer one, in the middle the even one; also from float64, where rounding twice
// would differ.
TEST(Cast, To16BitsRoundsOnceToTheNearest) {
  for (const auto& [dtype, exponent_bits] : {std::pair(DType::kFloat16, 5), std::pair(DType::kBFloat16, 8)}) {
    const uint16_t infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << (15 - exponent_bits));
    std::vector<double> x;
    std::vector<uint16_t> wanted;
    for (uint16_t bits = 0; bits + 1 < infinity; bits += 7) {
      const double low = Decode(bits, exponent_bits), high = Decode(bits + 1, exponent_bits),
                   middle = (low + high) / 2;
      x.insert(x.end(), {middle, std::nextafter(middle, 0), std::nextafter(middle, 1e300), -middle});
      const uint16_t even = bits % 2 == 0 ? bits : bits + 1;
      wanted.insert(wanted.end(),
                    {even, bits, static_cast<uint16_t>(bits + 1), static_cast<uint16_t>(even | 0x8000)});
    }
    x.insert(x.end(), {1e300, 1e-300, -1e300});
    wanted.insert(wanted.end(), {infinity, 0, static_cast<uint16_t>(infinity | 0x8000)});
    EXPECT_EQ((Cast<uint16_t, double>(DType::kFloat64, dtype, x)), wanted) << Name(dtype);
  }
}

TEST(Cast, IsNaN) {
  EXPECT_THAT(
      KernelCase("IsNaN")
          .In(Values<float>(DType::kFloat32, {3}, {1, std::nanf(""), std::numeric_limits<float>::infinity()}))
          .Out(DType::kBool, {3})
          .Get<uint8_t>(),
      ::testing::ElementsAre(0, 1, 0));
}

}  // namespace
}  // namespace pipec
