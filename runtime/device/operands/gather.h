// How indices meet data in Gather, GatherElements, GatherND and the ops that scatter.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/device.h"

namespace pipec {

// Gather: data is (outer, dim, inner), the gathered tensor (outer, count, inner).
struct GatherSizes {
  int64_t outer, dim, inner, count;
};
// With everything checked. GatherGrad's data is its attribute shape.
absl::StatusOr<GatherSizes> GatherSizesOf(const KernelSpec& spec);
absl::StatusOr<GatherSizes> GatherGradSizesOf(const KernelSpec& spec);

// GatherElements, ScatterElements: how places of `indices` meet places of `data`. A line is a place of indices
// without the coordinate of the axis.
struct ElementPlaces {
  int rank = 0;
  Shape dims;  // of indices
  Shape data_strides;
  int axis = 0;
  int64_t data_dim = 0, lines = 1;

  int64_t length() const { return dims[axis]; }
  // In indices, along the axis.
  int64_t step() const;
  // Where a line begins in indices and in data.
  std::pair<int64_t, int64_t> Begin(int64_t line) const;
};
// From operands 0 (data) and 1 (indices), and the attribute axis.
absl::StatusOr<ElementPlaces> ElementPlacesOf(const KernelSpec& spec);

// GatherND, ScatterND: data is (batch, places that tuples point into, slice), indices (batch, tuples, one tuple).
struct TupleSlices {
  Shape dims;  // of the axes that a tuple points into
  int64_t batch = 1, tuples = 1, slice = 1;

  int64_t places() const { return NumElements(dims); }
  // The slice that a tuple means.
  int64_t At(const int64_t* tuple) const;
};
// From operands 0 (data) and 1 (indices), with the shape of what is gathered or of the updates.
absl::StatusOr<TupleSlices> TupleSlicesOf(const KernelSpec& spec, int64_t batch_dims, Shape* gathered);

}  // namespace pipec
