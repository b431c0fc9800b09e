// Class labels against the rows of logits: what the classification losses and CountCorrect share.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/axis.h"
#include "runtime/device/operands/samples.h"

namespace pipec {

// Labels int32 or int64, of the shape of the logits without the axis of the classes; row r of view.outer *
// view.inner has label r, and its class c lies at At(r) + c * view.inner.
class LabelledRows {
 public:
  // `classes`: shape of the logits; `labels`: the operand's type, whose samples count (samples.h). Reads
  // the attributes axis (`axis` if absent) and ignore_index.
  static absl::StatusOr<LabelledRows> Of(const KernelSpec& spec, absl::Span<const int64_t> shape,
                                         const TensorType& labels, int64_t axis);

  const AxisView& view() const { return view_; }
  int64_t rows() const { return view_.outer * view_.inner; }
  int64_t classes() const { return view_.length; }
  int64_t At(int64_t row) const { return row / view_.inner * view_.length * view_.inner + row % view_.inner; }

  // Whether a row belongs to one of the first scalars.valid_samples samples; the rest is padding.
  bool IsPadding(int64_t row, const StepScalars& scalars) const { return samples_.IsPadding(row, scalars); }
  int64_t Label(const void* labels, int64_t row) const {
    return is_int64_ ? static_cast<const int64_t*>(labels)[row] : static_cast<const int32_t*>(labels)[row];
  }
  bool Ignored(int64_t label) const { return has_ignore_index_ && label == ignore_index_; }
  // InvalidArgument if a label that is no padding is neither a class nor ignored: its value, its place, the
  // bounds.
  absl::Status Check(const void* labels, const StepScalars& scalars) const;

 private:
  AxisView view_;
  Samples samples_;  // of the labels
  int64_t ignore_index_ = 0;
  bool is_int64_ = false, has_ignore_index_ = false;
};

}  // namespace pipec
