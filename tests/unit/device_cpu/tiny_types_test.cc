// Types of at most 8 bits: every code of every format against ONNX's definition by fields, every rounding
// against the nearest of all codes, and the ops that take them.
#include "runtime/base/tiny_types.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tests/unit/device_cpu/kernel_call.h"

namespace pipec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A format by its definition: value = (-1)^S * 2^(E - bias) * 1.M, with E = 0 for denormals; what is special
// is listed.
struct Definition {
  DType dtype;
  int bits, mantissa_bits, bias;
  std::vector<int> nans, infinities;  // positive codes with their negatives; FNUZ: the one code 0x80
};
const Definition kDefinitions[] = {
    {DType::kFloat8E4M3FN, 8, 3, 7, {0x7f, 0xff}, {}},
    {DType::kFloat8E4M3FNUZ, 8, 3, 8, {0x80}, {}},
    {DType::kFloat8E5M2, 8, 2, 15, {0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff}, {0x7c, 0xfc}},
    {DType::kFloat8E5M2FNUZ, 8, 2, 16, {0x80}, {}},
    {DType::kFloat4E2M1, 4, 1, 1, {}, {}},
};

bool Contains(const std::vector<int>& codes, int code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

double Value(const Definition& format, int code) {
  if (Contains(format.nans, code)) return std::nan("");
  const int half = 1 << (format.bits - 1);
  const double sign = code >= half ? -1 : 1;
  if (Contains(format.infinities, code)) return sign * kInfinity;
  const int field = code % half >> format.mantissa_bits;
  const double fraction =
      static_cast<double>(code % (1 << format.mantissa_bits)) / (1 << format.mantissa_bits);
  return field == 0 ? sign * std::pow(2, 1 - format.bias) * fraction
                    : sign * std::pow(2, field - format.bias) * (1 + fraction);
}

// The code of the finite number nearest to x, of the even mantissa in a tie, by looking at all of them.
int Nearest(const Definition& format, double x) {
  int best = -1;
  for (int code = 0; code < 1 << format.bits; ++code) {
    const double value = Value(format, code);
    if (!std::isfinite(value) || std::signbit(value) != std::signbit(x)) continue;
    const double far = std::abs(value - x),
                 nearest = best < 0 ? kInfinity : std::abs(Value(format, best) - x);
    if (far < nearest || (far == nearest && code % 2 == 0)) best = code;
  }
  return best;
}

TEST(TinyTypes, EveryCodeIsTheNumberThatItsFieldsSay) {
  for (const Definition& format : kDefinitions) {
    for (int code = 0; code < 1 << format.bits; ++code) {
      const double got = DecodeTiny(format.dtype, code), wanted = Value(format, code);
      const bool same = std::isnan(wanted) ? std::isnan(got) : got == wanted;
      EXPECT_EQ(std::signbit(got), code >= 1 << (format.bits - 1)) << Name(format.dtype) << " code " << code;
      EXPECT_TRUE(same) << Name(format.dtype) << " code " << code << ": " << got << ", wanted " << wanted;
    }
  }
}

TEST(TinyTypes, EveryNumberBetweenTwoCodesGoesToTheNearer) {
  for (const Definition& format : kDefinitions) {
    std::vector<double> numbers;
    for (int code = 0; code < 1 << format.bits; ++code) {
      const double value = Value(format, code);
      if (std::isfinite(value)) numbers.push_back(value);
    }
    std::sort(numbers.begin(), numbers.end());
    for (size_t i = 0; i + 1 < numbers.size(); ++i) {
      const double middle = (numbers[i] + numbers[i + 1]) / 2;
      for (double x :
           {numbers[i], middle, std::nextafter(middle, -kInfinity), std::nextafter(middle, kInfinity)}) {
        if (x == 0) continue;
        int wanted = Nearest(format, x);
        // These have no -0.
        const bool unsigned_zero = Contains(format.nans, 0x80);
        if (wanted < 0 || (unsigned_zero && std::abs(x) <= numbers[numbers.size() / 2 + 1] / 2)) wanted = 0;
        for (bool saturate : {false, true}) {
          ASSERT_EQ(TinyEncoder(format.dtype, saturate)(x), wanted) << Name(format.dtype) << " of " << x;
        }
      }
    }
  }
}

// The rows of ONNX's tables: the saturating one, then the other.
TEST(TinyTypes, NumbersBeyondTheRangeFollowOnnxsTables) {
  struct Row {
    DType dtype;
    double x;
    int saturated, otherwise;
  };
  const double nan = std::nan("");
  const Row rows[] = {
      {DType::kFloat8E4M3FN, kInfinity, 0x7e, 0x7f},
      {DType::kFloat8E4M3FN, -kInfinity, 0xfe, 0xff},
      {DType::kFloat8E4M3FN, 464, 0x7e, 0x7e},
      {DType::kFloat8E4M3FN, 465, 0x7e, 0x7f},
      {DType::kFloat8E4M3FN, nan, 0x7f, 0x7f},
      {DType::kFloat8E4M3FN, -0.0, 0x80, 0x80},
      {DType::kFloat8E4M3FNUZ, kInfinity, 0x7f, 0x80},
      {DType::kFloat8E4M3FNUZ, -1e30, 0xff, 0x80},
      {DType::kFloat8E4M3FNUZ, nan, 0x80, 0x80},
      {DType::kFloat8E4M3FNUZ, -0.0, 0, 0},
      {DType::kFloat8E4M3FNUZ, -1e-9, 0, 0},
      {DType::kFloat8E5M2, kInfinity, 0x7b, 0x7c},
      {DType::kFloat8E5M2, -1e300, 0xfb, 0xfc},
      {DType::kFloat8E5M2FNUZ, -kInfinity, 0xff, 0x80},
      {DType::kFloat8E5M2FNUZ, 1e6, 0x7f, 0x80},
      {DType::kFloat4E2M1, kInfinity, 7, 7},
      {DType::kFloat4E2M1, -9, 0xf, 0xf},
      {DType::kFloat4E2M1, nan, 8, 8},
      {DType::kFloat8E8M0, kInfinity, 0xfe, 0xff},
      {DType::kFloat8E8M0, nan, 0xff, 0xff},
      {DType::kFloat8E8M0, 0, 0, 0xff},
      {DType::kFloat8E8M0, 1e300, 0xfe, 0xff},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(TinyEncoder(row.dtype, true)(row.x), row.saturated) << Name(row.dtype) << " of " << row.x;
    EXPECT_EQ(TinyEncoder(row.dtype, false)(row.x), row.otherwise) << Name(row.dtype) << " of " << row.x;
  }
}

TEST(TinyTypes, PowersOfTwoRoundAsAsked) {
  for (int code = 0; code < 255; ++code) {
    const double power = std::pow(2, code - 127);
    EXPECT_EQ(DecodeTiny(DType::kFloat8E8M0, code), power);
    for (PowerRounding rounding : {PowerRounding::kUp, PowerRounding::kDown, PowerRounding::kNearest}) {
      EXPECT_EQ(TinyEncoder(DType::kFloat8E8M0, true, rounding)(power), code);
    }
    const int above = std::min(code + 1, 254);
    const auto rounded = [&](PowerRounding rounding, double factor) {
      return static_cast<int>(TinyEncoder(DType::kFloat8E8M0, true, rounding)(power * factor));
    };
    EXPECT_EQ(rounded(PowerRounding::kUp, 1.001), above);
    EXPECT_EQ(rounded(PowerRounding::kDown, 1.999), code);
    EXPECT_EQ(rounded(PowerRounding::kNearest, 1.499), code);
    EXPECT_EQ(rounded(PowerRounding::kNearest, 1.501), above);
  }
  EXPECT_TRUE(std::isnan(DecodeTiny(DType::kFloat8E8M0, 0xff)));
}

TEST(TinyTypes, IntegersWrapAndPack) {
  EXPECT_EQ(WrapTiny(DType::kInt4, 7), 7);
  EXPECT_EQ(WrapTiny(DType::kInt4, 8), 0xf8);
  EXPECT_EQ(WrapTiny(DType::kUint4, -1), 15);
  EXPECT_EQ(WrapTiny(DType::kInt2, 3), 0xff);
  EXPECT_EQ(WrapTiny(DType::kUint2, 6), 2);
  EXPECT_EQ(DecodeTiny(DType::kInt4, 0xf8), -8);
  // ONNX: the first element in the lowest bits.
  const std::string packed("\x8f\x01", 2);
  EXPECT_EQ(UnpackElements(DType::kInt4, packed, 3), std::string("\xff\xf8\x01", 3));
  EXPECT_EQ(UnpackElements(DType::kUint4, packed, 3), std::string("\x0f\x08\x01", 3));
  EXPECT_EQ(UnpackElements(DType::kUint2, packed, 5), std::string("\x03\x03\x00\x02\x01", 5));
  EXPECT_EQ(PackElements(DType::kInt4, std::string("\xff\xf8\x01", 3)), packed);
  EXPECT_EQ(PackElements(DType::kUint2, std::string("\x03\x03\x00\x02\x01", 5)), packed);
}

Tensor Bytes(DType dtype, const Shape& shape, const std::vector<int>& bytes) {
  Tensor tensor{{dtype, shape}, {}};
  for (int byte : bytes) tensor.bytes.push_back(static_cast<std::byte>(byte));
  return tensor;
}

std::string Cast(const Tensor& x, DType to) {
  KernelCall call("Cast", "");
  call.In(x).Attr("to", static_cast<int64_t>(to)).Out(to, x.type.shape);
  return call.Bytes();
}

TEST(TinyTypes, CastKeepsTheLowBitsOfIntegers) {
  const Tensor wide = Make(DType::kInt64, {4}, {-1, 8, 100000000008.0, -9});
  EXPECT_EQ(Cast(wide, DType::kInt4), std::string("\xff\xf8\xf8\x07", 4));
  EXPECT_EQ(Cast(Bytes(DType::kInt4, {2}, {0xff, 7}), DType::kUint2), std::string("\x03\x03", 2));
  EXPECT_EQ(Cast(Bytes(DType::kInt4, {2}, {0xff, 7}), DType::kInt8), std::string("\xff\x07", 2));
  EXPECT_EQ(Cast(Bytes(DType::kFloat8E4M3FN, {2}, {0x38, 0x7f}), DType::kFloat8E5M2),
            std::string("\x3c\x7e", 2));
}

TEST(TinyTypes, CastRefusesARoundingThatIsNone) {
  KernelCall call("Cast", "");
  call.In(Make(DType::kFloat32, {1}, {1})).Attr("to", static_cast<int64_t>(DType::kFloat8E8M0));
  call.Attr("round_mode", std::string("sideways")).Out(DType::kFloat8E8M0, {1});
  EXPECT_THAT(call.Error(), ::testing::HasSubstr("round_mode is 'sideways', wanted up, down or nearest"));
}

TEST(TinyTypes, BitCastOfFourBitsIsThatOfTheirCode) {
  KernelCall call("BitCast", "");
  call.In(Bytes(DType::kInt4, {3}, {0xff, 0xf8, 1})).Attr("to", static_cast<int64_t>(DType::kUint4));
  EXPECT_EQ(call.Out(DType::kUint4, {3}).Bytes(), std::string("\x0f\x08\x01", 3));
  KernelCall wider("BitCast", "");
  wider.In(Bytes(DType::kInt4, {1}, {1}))
      .Attr("to", static_cast<int64_t>(DType::kInt8))
      .Out(DType::kInt8, {1});
  EXPECT_THAT(wider.Error(), ::testing::HasSubstr("do not have as many bits"));
}

// Blocks of 2 along axis 1, each with a scale and a zero point of its own.
TEST(TinyTypes, BlocksOfInt4AreQuantisedAndBack) {
  const Tensor scale = Make(DType::kFloat32, {1, 2}, {0.5, 2});
  const Tensor zero = Bytes(DType::kInt4, {1, 2}, {0, 0xff});
  KernelCall quantise("QuantizeLinear", "");
  quantise.In(Make(DType::kFloat32, {1, 4}, {1.2, -9, 5, 100})).In(scale).In(zero);
  quantise.Attr("block_size", int64_t{2}).Out(DType::kInt4, {1, 4});
  // 2.4 -> 2; -18 -> -8; 2.5 -> 2, and -1; 50 -> 7.
  EXPECT_EQ(quantise.Bytes(), std::string("\x02\xf8\x01\x07", 4));
  KernelCall back("DequantizeLinear", "");
  back.In(Bytes(DType::kInt4, {1, 4}, {2, 0xf8, 1, 7})).In(scale).In(zero);
  back.Attr("block_size", int64_t{2}).Out(DType::kFloat32, {1, 4});
  EXPECT_EQ(back.Get(), (std::vector<double>{1, -4, 4, 16}));
}

TEST(TinyTypes, AScalarScaleTakesAZeroPointOfOneElement) {
  KernelCall back("DequantizeLinear", "");
  back.In(Bytes(DType::kUint4, {2}, {3, 15}))
      .In(Make(DType::kFloat32, {}, {0.5}))
      .In(Bytes(DType::kUint4, {1}, {1}));
  EXPECT_EQ(back.Out(DType::kFloat32, {2}).Get(), (std::vector<double>{1, 7}));
  KernelCall two("DequantizeLinear", "");
  two.In(Bytes(DType::kUint4, {2}, {3, 15}))
      .In(Make(DType::kFloat32, {}, {0.5}))
      .In(Bytes(DType::kUint4, {2}, {1, 1}));
  EXPECT_THAT(two.Out(DType::kFloat32, {2}).Error(),
              ::testing::HasSubstr("the zero point has another shape"));
}

TEST(TinyTypes, AScaleMayBeAPowerOfTwo) {
  KernelCall back("DequantizeLinear", "");
  back.In(Bytes(DType::kFloat4E2M1, {2}, {7, 9})).In(Bytes(DType::kFloat8E8M0, {}, {129}));
  back.Attr("output_dtype", static_cast<int64_t>(DType::kFloat32)).Out(DType::kFloat32, {2});
  EXPECT_EQ(back.Get(), (std::vector<double>{24, -2}));
}

}  // namespace
}  // namespace pipec
