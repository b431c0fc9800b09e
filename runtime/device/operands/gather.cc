#include "runtime/device/operands/gather.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {
namespace {

// Data and axis as in ONNX, `gathered` has the shape of indices in the axis' place.
absl::StatusOr<GatherSizes> FindSizes(const KernelSpec& spec, const Shape& data, const TensorType& indices,
                                      Shape* gathered) {
  absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis", 0), static_cast<int>(data.size()));
  if (!axis.ok()) return Invalid(spec, axis.status().message());
  RETURN_IF_ERROR(CheckIndexType(spec, 1));
  gathered->assign(data.begin(), data.begin() + *axis);
  gathered->insert(gathered->end(), indices.shape.begin(), indices.shape.end());
  gathered->insert(gathered->end(), data.begin() + *axis + 1, data.end());
  return GatherSizes{NumElements(absl::MakeSpan(data).subspan(0, *axis)), data[*axis],
                     NumElements(absl::MakeSpan(data).subspan(*axis + 1)), indices.elements()};
}

}  // namespace

absl::StatusOr<GatherSizes> GatherSizesOf(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const TensorType& data = spec.inputs[0].type;
  if (SizeOf(data.dtype) == 0) return NoKernelFor(spec, data.dtype);
  Shape shape;
  ASSIGN_OR_RETURN(const GatherSizes sizes, FindSizes(spec, data.shape, spec.inputs[1].type, &shape));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {data.dtype, shape}));
  return sizes;
}

absl::StatusOr<GatherSizes> GatherGradSizesOf(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const TensorType& dy = spec.inputs[0].type;
  const std::vector<int64_t> dims = spec.attributes.Ints("shape");
  const Shape data(dims.begin(), dims.end());
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dy.dtype, data}));
  Shape gathered;
  ASSIGN_OR_RETURN(const GatherSizes sizes, FindSizes(spec, data, spec.inputs[1].type, &gathered));
  if (dy.shape != gathered) {
    return Invalid(spec, absl::StrCat("input 0 is ", ToString(dy.shape), ", wanted ", ToString(gathered)));
  }
  return sizes;
}

int64_t ElementPlaces::step() const { return NumElements(absl::MakeSpan(dims).subspan(axis + 1)); }

std::pair<int64_t, int64_t> ElementPlaces::Begin(int64_t line) const {
  int64_t at = 0, data_at = 0, stride = 1;
  for (int i = rank - 1; i >= 0; stride *= dims[i], --i) {
    if (i == axis) continue;
    const int64_t place = line % dims[i];
    line /= dims[i];
    at += place * stride;
    data_at += place * data_strides[i];
  }
  return {at, data_at};
}

absl::StatusOr<ElementPlaces> ElementPlacesOf(const KernelSpec& spec) {
  const Shape &data = spec.inputs[0].type.shape, &indices = spec.inputs[1].type.shape;
  RETURN_IF_ERROR(CheckIndexType(spec, 1));
  ElementPlaces places;
  places.rank = static_cast<int>(data.size());
  absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis", 0), places.rank);
  if (!axis.ok()) return Invalid(spec, axis.status().message());
  bool fits = indices.size() == data.size();
  for (int i = 0; i < places.rank && fits; ++i) fits = i == *axis || indices[i] <= data[i];
  if (!fits) {
    return Invalid(spec,
                   absl::StrCat("indices ", ToString(indices), " do not fit into data ", ToString(data)));
  }
  places.dims = indices;
  places.data_strides = Strides(data);
  places.axis = *axis;
  places.data_dim = data[*axis];
  for (int i = 0; i < places.rank; ++i) places.lines *= i == *axis ? 1 : indices[i];
  if (places.length() == 0) places.lines = 0;
  return places;
}

int64_t TupleSlices::At(const int64_t* tuple) const {
  int64_t at = 0;
  for (size_t i = 0; i < dims.size(); ++i) at = at * dims[i] + (tuple[i] < 0 ? tuple[i] + dims[i] : tuple[i]);
  return at;
}

absl::StatusOr<TupleSlices> TupleSlicesOf(const KernelSpec& spec, int64_t batch_dims, Shape* gathered) {
  const Shape &data = spec.inputs[0].type.shape, &indices = spec.inputs[1].type.shape;
  RETURN_IF_ERROR(CheckInputType(spec, 1, DType::kInt64));
  const auto wrong = [&](absl::string_view why) {
    return Invalid(spec,
                   absl::StrCat("data is ", ToString(data), ", indices ", ToString(indices), ": ", why));
  };
  if (data.empty() || indices.empty()) return wrong("wanted rank 1 or more");
  const int64_t rank = static_cast<int64_t>(data.size()), index_rank = static_cast<int64_t>(indices.size());
  if (batch_dims < 0 || batch_dims >= index_rank || batch_dims > rank) {
    return wrong(absl::StrCat("batch_dims is ", batch_dims));
  }
  const int64_t tuple = indices.back();
  if (tuple < 0 || batch_dims + tuple > rank) return wrong("a tuple has more coordinates than data");
  for (int64_t i = 0; i < batch_dims; ++i) {
    if (data[i] != indices[i]) return wrong("the batch dimensions differ");
  }
  const auto d = absl::MakeSpan(data), x = absl::MakeSpan(indices);
  TupleSlices slices;
  slices.dims.assign(data.begin() + batch_dims, data.begin() + batch_dims + tuple);
  slices.batch = NumElements(d.first(batch_dims));
  slices.tuples = NumElements(x.subspan(batch_dims, index_rank - 1 - batch_dims));
  slices.slice = NumElements(d.subspan(batch_dims + tuple));
  gathered->assign(indices.begin(), indices.end() - 1);
  gathered->insert(gathered->end(), data.begin() + batch_dims + tuple, data.end());
  return slices;
}

}  // namespace pipec
