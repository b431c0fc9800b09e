// MatMulInteger is exact, however deep the product and however large its elements.
#include "tests/unit/device_cpu/kernel_call.h"

namespace pipec {
namespace {

struct Sizes {
  int64_t rows, depth, columns;
};

// `value` draws elements of A and B.
template <typename Draw>
void CheckExact(const Sizes& sizes, DType a_type, DType b_type, Draw value, int threads) {
  const auto [rows, depth, columns] = sizes;
  const auto make = [&](DType dtype, const Shape& shape) {
    std::vector<double> values(NumElements(shape));
    for (double& v : values) v = value(dtype);
    return Make(dtype, shape, values);
  };
  const Tensor a = make(a_type, {rows, depth}), b = make(b_type, {depth, columns});
  const Tensor a_zero = make(a_type, {rows}), b_zero = make(b_type, {columns});
  const std::vector<double> as = Values(a), bs = Values(b), az = Values(a_zero), bz = Values(b_zero);
  std::vector<double> wanted(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      int64_t sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        sum += static_cast<int64_t>(as[i * depth + k] - az[i]) *
               static_cast<int64_t>(bs[k * columns + j] - bz[j]);
      }
      wanted[i * columns + j] = static_cast<double>(sum);
    }
  }
  EXPECT_EQ(KernelCall("MatMulInteger", "")
                .Threads(threads)
                .In(a)
                .In(b)
                .In(a_zero)
                .In(b_zero)
                .Out(DType::kInt32, {rows, columns})
                .Get(),
            wanted)
      << rows << " x " << depth << " x " << columns;
}

constexpr Sizes kSizes[] = {{1, 1, 1},   {3, 255, 5},  {17, 256, 4}, {4, 257, 33},
                            {1, 512, 7}, {35, 700, 2}, {5, 1300, 1}};

TEST(ByteProduct, OfRandomBytes) {
  std::mt19937 random(3);
  const auto draw = [&](DType dtype) {
    const int low = dtype == DType::kInt8 ? -128 : 0;
    return static_cast<double>(std::uniform_int_distribution<int>(low, low + 255)(random));
  };
  for (const Sizes& sizes : kSizes) {
    CheckExact(sizes, DType::kUint8, DType::kUint8, draw, 1);
    CheckExact(sizes, DType::kUint8, DType::kInt8, draw, 3);
    CheckExact(sizes, DType::kInt8, DType::kUint8, draw, 2);
    CheckExact(sizes, DType::kInt8, DType::kInt8, draw, 1);
  }
}

// Sums as large as they can be: odd, so that a float32 that is one bit short shows it.
TEST(ByteProduct, OfTheLargestDifferences) {
  for (const Sizes& sizes : kSizes) {
    const int64_t elements = sizes.depth * (sizes.rows + sizes.columns);
    int64_t drawn = 0;
    const auto draw = [&](DType) { return drawn++ < elements ? 255.0 : 0.0; };  // then the zero points
    CheckExact(sizes, DType::kUint8, DType::kUint8, draw, 1);
  }
}

}  // namespace
}  // namespace pipec
