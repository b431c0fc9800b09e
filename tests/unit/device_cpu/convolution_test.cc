// Convolutions and pooling against a direct sum over places, which shares nothing with the kernels' window
// arithmetic: groups, strides, dilations and uneven padding together, in both float types, 1 to 3 axes.
#include <cmath>

#include "tests/unit/device_cpu/kernel_call.h"

namespace pipec {
namespace {

struct Case {
  int groups = 1, x_channels = 1, y_channels = 1;  // channels of one group
  std::vector<int64_t> in, kernel, stride, dilation, before, after;

  size_t rank() const { return in.size(); }
  std::vector<int64_t> pads() const {
    std::vector<int64_t> pads = before;
    pads.insert(pads.end(), after.begin(), after.end());
    return pads;
  }
  std::vector<int64_t> out() const {
    std::vector<int64_t> out;
    for (size_t i = 0; i < rank(); ++i) {
      out.push_back((in[i] + before[i] + after[i] - (kernel[i] - 1) * dilation[i] - 1) / stride[i] + 1);
    }
    return out;
  }
};

const Case kCases[] = {
    {1, 3, 4, {7}, {3}, {2}, {1}, {1}, {0}},
    {2, 3, 2, {6, 7}, {3, 2}, {1, 2}, {1, 1}, {1, 0}, {0, 1}},
    {3, 1, 1, {9, 8}, {3, 3}, {2, 1}, {2, 2}, {2, 1}, {1, 2}},
    {1, 8, 16, {10, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 2, 3, {4, 5, 6}, {2, 3, 2}, {1, 2, 1}, {2, 1, 3}, {1, 1, 0}, {0, 1, 2}},
    // One tap: a matrix product; with groups or strides it is none.
    {1, 5, 7, {9}, {1}, {1}, {2}, {0}, {0}},
    {1, 17, 6, {6, 9}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {1, 3, 4, {3, 2, 5}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
    {2, 3, 4, {6, 9}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {1, 3, 4, {6, 9}, {1, 1}, {1, 2}, {1, 1}, {0, 0}, {0, 0}},
};

Shape Join(Shape head, const std::vector<int64_t>& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

// f(index of each axis) for all of a box.
template <typename F>
void ForEachPlace(const std::vector<int64_t>& sizes, F f) {
  std::vector<int64_t> at(sizes.size());
  for (int64_t i = 0; i < NumElements(sizes); ++i) {
    int64_t rest = i;
    for (size_t axis = sizes.size(); axis-- > 0; rest /= sizes[axis]) at[axis] = rest % sizes[axis];
    f(at, i);
  }
}

// f(batch, channel of X, channel of Y, place of X, window, place in W) for each product that a convolution
// adds up. W is (channels of Y, channels of X in a group, taps).
template <typename F>
void ForEachProduct(const Case& c, int64_t batch, F f) {
  const std::vector<int64_t> out = c.out();
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t g = 0; g < c.groups; ++g) {
      for (int64_t m = 0; m < c.y_channels; ++m) {
        for (int64_t k = 0; k < c.x_channels; ++k) {
          ForEachPlace(out, [&](const std::vector<int64_t>& window, int64_t to) {
            ForEachPlace(c.kernel, [&](const std::vector<int64_t>& tap, int64_t t) {
              int64_t from = 0;
              for (size_t i = 0; i < c.rank(); ++i) {
                const int64_t place = window[i] * c.stride[i] + tap[i] * c.dilation[i] - c.before[i];
                if (place < 0 || place >= c.in[i]) return;
                from = from * c.in[i] + place;
              }
              const int64_t x = g * c.x_channels + k, y = g * c.y_channels + m, taps = NumElements(c.kernel);
              f(n, x, y, from, to, (y * c.x_channels + k) * taps + t);
            });
          });
        }
      }
    }
  }
}

KernelCall Call(absl::string_view op, const Case& c) {
  KernelCall call(op, "");
  call.Attr("group", int64_t{c.groups})
      .Attr("strides", c.stride)
      .Attr("dilations", c.dilation)
      .Attr("pads", c.pads());
  return call;
}

constexpr int64_t kBatch = 2;

class ConvolutionTest : public ::testing::TestWithParam<DType> {};

TEST_P(ConvolutionTest, ConvIsTheSumOfItsProducts) {
  for (const Case& c : kCases) {
    const int64_t x_channels = c.groups * c.x_channels, y_channels = c.groups * c.y_channels;
    const int64_t places = NumElements(c.in), windows = NumElements(c.out());
    const Tensor x = Random(GetParam(), Join({kBatch, x_channels}, c.in), 1);
    const Tensor w = Random(GetParam(), Join({y_channels, c.x_channels}, c.kernel), 2);
    const Tensor b = Random(GetParam(), {y_channels}, 3);
    const std::vector<double> xs = Values(x), ws = Values(w), bs = Values(b);
    std::vector<double> wanted(kBatch * y_channels * windows);
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = bs[i / windows % y_channels];
    ForEachProduct(c, kBatch, [&](int64_t n, int64_t k, int64_t m, int64_t from, int64_t to, int64_t tap) {
      wanted[(n * y_channels + m) * windows + to] += xs[(n * x_channels + k) * places + from] * ws[tap];
    });
    KernelCall call = Call("Conv", c);
    call.In(x).In(w).In(b).Out(GetParam(), Join({kBatch, y_channels}, c.out()));
    ExpectNear(call.Get(), wanted, Tolerance(GetParam()), "Conv");
    const std::string alone = call.Bytes();
    EXPECT_EQ(alone, call.Threads(3).Bytes()) << "the number of threads shows";
  }
}

// ConvTranspose is the linear map that Conv's is the transpose of: its X has Conv's windows.
TEST_P(ConvolutionTest, ConvTransposeAddsEachWindowToWhereItReads) {
  for (const Case& c : kCases) {
    const int64_t x_channels = c.groups * c.y_channels, y_channels = c.groups * c.x_channels;
    const int64_t places = NumElements(c.in), windows = NumElements(c.out());
    const Tensor x = Random(GetParam(), Join({kBatch, x_channels}, c.out()), 4);
    const Tensor w = Random(GetParam(), Join({x_channels, c.x_channels}, c.kernel), 5);
    const std::vector<double> xs = Values(x), ws = Values(w);
    std::vector<double> wanted(kBatch * y_channels * places);
    ForEachProduct(c, kBatch, [&](int64_t n, int64_t k, int64_t m, int64_t from, int64_t to, int64_t tap) {
      wanted[(n * y_channels + k) * places + from] += xs[(n * x_channels + m) * windows + to] * ws[tap];
    });
    std::vector<int64_t> extra;  // places at the end that no window reaches
    for (size_t i = 0; i < c.rank(); ++i) {
      extra.push_back((c.in[i] + c.before[i] + c.after[i] - (c.kernel[i] - 1) * c.dilation[i] - 1) %
                      c.stride[i]);
    }
    KernelCall call = Call("ConvTranspose", c);
    call.Attr("output_padding", extra).In(x).In(w).Out(GetParam(), Join({kBatch, y_channels}, c.in));
    ExpectNear(call.Get(), wanted, Tolerance(GetParam()), "ConvTranspose");
    const std::string alone = call.Bytes();
    EXPECT_EQ(alone, call.Threads(3).Bytes()) << "the number of threads shows";
  }
}

TEST_P(ConvolutionTest, PoolsSeeTheirWindows) {
  for (const Case& c : kCases) {
    const int64_t places = NumElements(c.in), windows = NumElements(c.out()), planes = kBatch * 3;
    const Tensor x = Random(GetParam(), Join({kBatch, 3}, c.in), 6);
    const std::vector<double> xs = Values(x);
    std::vector<double> greatest(planes * windows, -1e30), at(planes * windows), sum(planes * windows),
        count(planes * windows), cubes(planes * windows);
    Case plane = c;
    plane.groups = plane.x_channels = plane.y_channels = 1;
    ForEachProduct(plane, planes, [&](int64_t n, int64_t, int64_t, int64_t from, int64_t to, int64_t) {
      const double value = xs[n * places + from];
      const int64_t i = n * windows + to;
      if (value > greatest[i]) greatest[i] = value, at[i] = n * places + from;
      sum[i] += value;
      count[i] += 1;
      cubes[i] += std::pow(std::abs(value), 3);
    });
    std::vector<double> average = sum, norm = cubes;
    for (size_t i = 0; i < average.size(); ++i) average[i] /= count[i], norm[i] = std::cbrt(norm[i]);
    const auto pool = [&](absl::string_view op) {
      KernelCall call(op, "");
      call.Attr("kernel_shape", c.kernel).Attr("strides", c.stride).Attr("dilations", c.dilation);
      call.Attr("pads", c.pads()).In(x).Out(GetParam(), Join({kBatch, 3}, c.out()));
      return call;
    };
    ExpectNear(pool("MaxPool").Get(), greatest, 0, "MaxPool");
    KernelCall with_indices = pool("MaxPool");
    with_indices.Out(DType::kInt64, Join({kBatch, 3}, c.out()));
    ExpectNear(with_indices.Get(0), greatest, 0, "MaxPool");
    ExpectNear(with_indices.Get(1), at, 0, "Indices");
    ExpectNear(pool("AveragePool").Get(), average, Tolerance(GetParam()), "AveragePool");
    ExpectNear(pool("LpPool").Attr("p", int64_t{3}).Get(), norm, Tolerance(GetParam()), "LpPool");
    for (double& value : sum) value /= static_cast<double>(NumElements(c.kernel));
    ExpectNear(pool("AveragePool").Attr("count_include_pad", int64_t{1}).Get(), sum, Tolerance(GetParam()),
               "padded");
  }
}

TEST_P(ConvolutionTest, AttributesOutOfRangeAreRefused) {
  using Ints = std::vector<int64_t>;
  const auto conv = [](absl::string_view name, Attribute value) {
    KernelCall call("Conv", "");
    call.In(Random(GetParam(), {1, 2, 5, 5}, 1)).In(Random(GetParam(), {2, 2, 3, 3}, 2));
    return call.Out(GetParam(), {1, 2, 3, 3}).Attr(name, std::move(value)).Error();
  };
  EXPECT_THAT(conv("strides", Ints{0, 1}), ::testing::HasSubstr("attribute strides has 0"));
  EXPECT_THAT(conv("dilations", Ints{1, 0}), ::testing::HasSubstr("attribute dilations has 0"));
  EXPECT_THAT(conv("pads", Ints{0, 0, -1, 0}), ::testing::HasSubstr("attribute pads has -1"));
  EXPECT_THAT(conv("pads", Ints{0, 0}), ::testing::HasSubstr("wanted 4"));
  EXPECT_THAT(conv("dilations", Ints{1, int64_t{1} << 40}), ::testing::HasSubstr("attribute dilations has"));
  EXPECT_THAT(conv("group", int64_t{0}), ::testing::HasSubstr("0 groups"));
  EXPECT_THAT(conv("auto_pad", std::string("SAME")), ::testing::HasSubstr("auto_pad is SAME"));
  EXPECT_THAT(conv("dilations", Ints{3, 3}), ::testing::HasSubstr("does not fit"));
  KernelCall pool("MaxPool", "");
  pool.In(Random(GetParam(), {1, 1, 5}, 1)).Out(GetParam(), {1, 1, 5}).Attr("kernel_shape", Ints{0});
  EXPECT_THAT(pool.Error(), ::testing::HasSubstr("a kernel of 0"));
}

INSTANTIATE_TEST_SUITE_P(Floats, ConvolutionTest, ::testing::Values(DType::kFloat32, DType::kFloat64));

}  // namespace
}  // namespace pipec
