// MaxPoolGrad (dY, Indices) -> (dX): dY added to where MaxPool read it. AveragePoolGrad (dY) -> (dX): every tap
// of a window that lies inside gets an equal share. A plane is one sample's channel; its windows add up in
// order, so that threads do not matter.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/operands/pooling.h"

namespace pipec::cpu {
namespace {

// X's shape (N, C, places...) from the attribute; dY has the same planes.
struct Planes {
  Shape shape;
  int64_t count = 0, places = 0, windows = 0;
};

absl::StatusOr<Planes> ReadPlanes(const KernelSpec& spec) {
  const TensorType& dy = spec.inputs[0].type;
  const std::vector<int64_t> dims = spec.attributes.Ints("shape");
  Planes planes{{dims.begin(), dims.end()}};
  if (dims.size() < 3 || dims.size() != dy.shape.size() || dims[0] != dy.shape[0] || dims[1] != dy.shape[1]) {
    return Invalid(spec, absl::StrCat("dY is ", ToString(dy), ", attribute shape ", ToString(planes.shape),
                                      ": wanted equal ranks of 3 or more and the same batch and channels"));
  }
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dy.dtype, planes.shape}));
  planes.count = dims[0] * dims[1];
  planes.places = NumElements(absl::MakeSpan(planes.shape).subspan(2));
  planes.windows = NumElements(absl::MakeSpan(dy.shape).subspan(2));
  return planes;
}

int64_t Grain(const Planes& planes) {
  return std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, planes.places + planes.windows));
}

// An index that counts the first spatial axis fastest, as one that counts the last fastest.
int64_t RowMajor(int64_t index, absl::Span<const int64_t> places) {
  int64_t place = 0, step = NumElements(places);
  for (const int64_t size : places) {
    step /= size;
    place += index % size * step;
    index /= size;
  }
  return place;
}

// How many taps of each window of an axis count.
std::vector<int64_t> Counts(const Pooling& pooling, const WindowAxis& axis) {
  std::vector<int64_t> counts(axis.out);
  for (int64_t o = 0; o < axis.out; ++o) counts[o] = pooling.Counted(axis, axis.Start(o));
  return counts;
}

// Of each window of a plane whether it lies in the padding alone: then it has read nothing, though it has an index.
std::vector<bool> Blind(const Pooling& pooling) {
  const auto& [depth, height, width] = pooling.windows.axes;
  std::vector<bool> blind;
  for (const int64_t d : Counts(pooling, depth)) {
    for (const int64_t h : Counts(pooling, height)) {
      for (const int64_t w : Counts(pooling, width)) blind.push_back(d == 0 || h == 0 || w == 0);
    }
  }
  return blind;
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareMax(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckInput(spec, 1, {DType::kInt64, type.shape}));
  ASSIGN_OR_RETURN(const Planes planes, ReadPlanes(spec));
  const bool column_major = spec.attributes.Int("storage_order", 0) != 0;
  ASSIGN_OR_RETURN(const Pooling pooling, ReadPooling(spec, planes.shape, type.shape));
  const std::vector<bool> blind = Blind(pooling);
  return ForFloats(spec, type.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) {
      const T* const dy = Input<T>(arguments, 0);
      const int64_t* const indices = Input<int64_t>(arguments, 1);
      T* const dx = Output<T>(arguments, 0);
      const int64_t elements = planes.count * planes.places, windows = planes.windows;
      for (int64_t i = 0; i < planes.count * windows; ++i) {
        const int64_t first = i / windows * planes.places;
        if (indices[i] >= first && indices[i] < first + planes.places) continue;
        return absl::InvalidArgumentError(absl::StrCat("index ", indices[i], " is outside [", first, ",",
                                                       first + planes.places, "), the plane of element ", i,
                                                       " of dY"));
      }
      std::fill_n(dx, elements, T{0});
      ParallelFor(planes.count, Grain(planes), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin * windows; i < end * windows; ++i) {
          if (blind[i % windows]) continue;
          int64_t place = indices[i];
          if (column_major) {
            const int64_t first = i / windows * planes.places;
            place = first + RowMajor(place - first, absl::MakeSpan(planes.shape).subspan(2));
          }
          dx[place] += dy[i];
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareAverage(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType& type = spec.inputs[0].type;
  ASSIGN_OR_RETURN(const Planes planes, ReadPlanes(spec));
  ASSIGN_OR_RETURN(const Pooling pooling, ReadPooling(spec, planes.shape, type.shape));
  const Windows& windows = pooling.windows;
  std::vector<int64_t> counts[3];
  for (int i = 0; i < 3; ++i) counts[i] = Counts(pooling, windows.axes[i]);
  return ForFloats(spec, type.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [=](const KernelArguments& arguments) {
      const auto& [depth, height, width] = windows.axes;
      T* const dx = Output<T>(arguments, 0);
      std::fill_n(dx, planes.count * planes.places, T{0});
      ParallelFor(
          planes.count, Grain(planes),
          [&, &depth = depth, &height = height, &width = width](int64_t begin, int64_t end) {
            const T* dy = Input<T>(arguments, 0) + begin * planes.windows;
            for (int64_t plane = begin; plane < end; ++plane) {
              for (int64_t d = 0; d < depth.out; ++d) {
                for (int64_t h = 0; h < height.out; ++h, dy += width.out) {
                  const int64_t d_start = depth.Start(d), h_start = height.Start(h);
                  const int64_t lines = counts[0][d] * counts[1][h];
                  for (int64_t kd = depth.FirstTap(d_start); kd < depth.EndTap(d_start); ++kd) {
                    for (int64_t kh = height.FirstTap(h_start); kh < height.EndTap(h_start); ++kh) {
                      T* const line =
                          dx + plane * planes.places +
                          ((d_start + kd * depth.dilation) * height.in + h_start + kh * height.dilation) *
                              width.in;
                      for (int64_t kw = 0; kw < width.kernel; ++kw) {
                        const int64_t place = kw * width.dilation - width.before;
                        const int64_t first = width.FirstWindow(kw), last = width.EndWindow(kw);
                        for (int64_t i = first; i < last; ++i)
                          line[i * width.stride + place] += dy[i] / static_cast<T>(lines * counts[2][i]);
                      }
                    }
                  }
                }
              }
            }
          });
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterPoolGradKernels(KernelRegistry& registry) {
  registry.Add("MaxPoolGrad", kPipecDomain, PrepareMax);
  registry.Add("AveragePoolGrad", kPipecDomain, PrepareAverage);
}

}  // namespace pipec::cpu
