#include "compiler/onnx/batch/baked_batch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/onnx/batch/uniform_rows.h"
#include "compiler/onnx/schema/emit_node.h"
#include "compiler/onnx/schema/infer.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr size_t kMostCandidates = 4;
constexpr size_t kMostNamed = 4;

// The operand that says how large the result shall be; -1 if the op has none.
int TargetOperand(absl::string_view op) {
  if (op == "Reshape" || op == "Expand" || op == "AffineGrid") return 1;
  if (op == "MaxUnpool") return 2;
  return op == "Resize" ? 3 : -1;
}

// Which entry of the target holds the result's axis `axis`; -1 if none does.
int TargetEntry(const NodeSpec& spec, const std::vector<int64_t>& target, int axis, int rank) {
  const int entries = target.size();
  const std::vector<int64_t> axes = spec.attributes.Ints("axes");
  if (axes.empty()) return axis - (rank - entries);
  for (int i = 0; i < static_cast<int>(axes.size()); ++i) {
    if (NormalizeAxis(axes[i], rank) == axis) return i;
  }
  return -1;
}

// The same numbers in both imports: written into the model, or made of what does not depend on the batch.
bool IsLiteral(const Value* value, const ValueRecord& exported) {
  return value && value->kind() == ValueKind::kConstant && value->data.bytes && exported.bytes &&
         *value->data.bytes == *exported.bytes;
}

bool IsRecurrent(absl::string_view op) { return op == "RNN" || op == "GRU" || op == "LSTM"; }

// Along which axis operand `i` must hold every sample, or be of size 1 to hold for all; -1 if along none.
int SampleAxis(const NodeSpec& spec, const NodeRecord& exported, int i) {
  if (IsRecurrent(spec.op)) {
    if (i == 4) return 0;
    return i == 5 || i == 6 ? (spec.attributes.Int("layout") == 1 ? 0 : 1) : -1;
  }
  const ValueRecord& out = exported.outputs[0];
  const int axis = out.batch_axis, rank = exported.inputs[i].shape.size();
  const int aligned = axis - (static_cast<int>(out.shape.size()) - rank);
  if (axis < 0) return -1;
  if (IsBroadcast(spec.op, spec.domain) || (spec.op == "Gemm" && i == 2)) return aligned;
  if (spec.op == "MatMul")
    return exported.inputs[1 - i].shape.size() >= 2 && aligned < rank - 2 ? aligned : -1;
  if (spec.op == "Concat" || spec.op == "GatherElements" || spec.op == "ScatterElements") return axis;
  return spec.op == "Attention" && i == 3 && rank == 4 ? 0 : -1;
}

// Whether the node picks entries along axis `axis` of operand 0 by their numbers, or a number of them that is
// the batch.
bool PicksEntries(const NodeSpec& spec, const NodeRecord& exported, int axis) {
  if (!spec.domain.empty()) return spec.op == "Compress";
  const int64_t rank = exported.inputs[0].shape.size();
  const bool along = NormalizeAxis(spec.attributes.Int("axis", spec.op == "TopK" ? -1 : 0), rank) == axis;
  if (spec.op == "TopK") return along && exported.outputs[0].shape[axis] == exported.inputs[0].shape[axis];
  if (spec.op == "Gather" || spec.op == "GatherElements" || spec.op == "ScatterElements") return along;
  if (spec.op == "Compress") return along || !spec.attributes.Has("axis");
  return spec.op == "Slice" || spec.op == "Split" || spec.op == "GatherND" || spec.op == "ScatterND";
}

std::string Join(const std::vector<int64_t>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ","), "]");
}

}  // namespace

BakedBatch::BakedBatch(int64_t samples, const BatchRecord* exported, absl::flat_hash_set<std::string> shared)
    : samples_(samples), exported_(exported), shared_(std::move(shared)) {}

void BakedBatch::Bind(int64_t samples, int64_t written, std::vector<std::string> alike) {
  samples_ = record_.samples = samples;
  written_ = written;
  alike_ = std::move(alike);
}

std::string BakedBatch::Samples() const {
  return absl::StrCat("a batch of ", exported_->samples, ", not for the ", samples_,
                      " sample(s) of a microbatch");
}

Shape BakedBatch::Scaled(const ValueRecord& value) const {
  Shape shape = value.shape;
  if (value.batch_axis >= 0) shape[value.batch_axis] = Scaled(shape[value.batch_axis]);
  return shape;
}

absl::StatusOr<std::vector<TensorType>> BakedBatch::InferTypes(Graph& graph, NodeSpec& spec, int outputs) {
  const NodeRecord* exported = exported_ ? exported_->Find(spec, met_[spec.name]++) : nullptr;
  compared_ = exported;
  if (exported) RETURN_IF_ERROR(WithRemedy(Refit(graph, spec, *exported)));
  absl::StatusOr<std::vector<TensorType>> types = pipec::InferTypes(spec, outputs);
  if (!types.ok()) {
    if (!absl::IsInvalidArgument(types.status())) return types;
    misfit_ = true;
    Suspect(spec);
    if (!exported) return types;
    return WithRemedy(absl::InvalidArgumentError(
        absl::StrCat("the model's constants are written for ", Samples(), ": ", types.status().message())));
  }
  if (exported) RETURN_IF_ERROR(WithRemedy(Compare(spec, *exported, *types)));
  return types;
}

absl::Status BakedBatch::WithRemedy(const absl::Status& status) const {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; keep ", exported_->samples,
                                   " sample(s) a microbatch (--microbatches=M --batch=", exported_->samples,
                                   " x M; M=1 keeps the batch whole), or export with a symbolic batch "
                                   "(dynamic_shapes, dynamic_axes)"));
}

absl::Status BakedBatch::Refit(Graph& graph, NodeSpec& spec, const NodeRecord& exported) {
  if (exported.outputs.empty() || exported_->samples == samples_) return absl::OkStatus();
  RETURN_IF_ERROR(RefitTarget(graph, spec, exported));
  if (written_ > 0) RETURN_IF_ERROR(RefitCount(graph, spec, exported));
  return RefitOperands(graph, spec, exported);
}

absl::Status BakedBatch::RefitTarget(Graph& graph, NodeSpec& spec, const NodeRecord& exported) {
  const int k = TargetOperand(spec.op);
  if (!spec.domain.empty() || k < 0 || k >= static_cast<int>(spec.inputs.size())) return absl::OkStatus();
  Value* data = spec.inputs[0];
  Value* operand = spec.inputs[k];
  if (!data || data->batch_axis < 0 || !IsLiteral(operand, exported.inputs[k])) return absl::OkStatus();
  std::optional<std::vector<int64_t>> target = ConstantInts(operand);
  if (!target) return absl::OkStatus();

  const ValueRecord& out = exported.outputs[0];
  const std::string what =
      absl::StrCat("its target ", Join(*target), ", operand ", k, ", is written for ", Samples());
  const std::string where =
      absl::StrCat("axis ", data->batch_axis, " of operand '", data->name(), "' ", ToString(data->type));
  const absl::StatusOr<std::vector<TensorType>> as_written = pipec::InferTypes(spec, 1);
  if (out.batch_axis < 0) {
    // An axis behind others may be lost from view without harm, if the shapes go along.
    if (as_written.ok() && data->batch_axis > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(what, ", and folds the batch, ", where, ", into other axes"));
  }
  const Shape wanted = Scaled(out);
  if (as_written.ok() && as_written->front().shape == wanted) return absl::OkStatus();
  const int64_t size = out.shape[out.batch_axis];
  if (size != exported_->samples) {
    return absl::InvalidArgumentError(absl::StrCat(what, ", and folds the batch, ", where,
                                                   ", with another axis into axis ", out.batch_axis,
                                                   " of size ", size, "; -1 there would do"));
  }
  const int entry = TargetEntry(spec, *target, out.batch_axis, out.shape.size());
  if (entry < 0) return absl::OkStatus();
  if (spec.op == "Reshape") {
    // Another entry of that size with no elements before it: with one sample, where the batch goes cannot be
    // told.
    for (int j = 0; j < static_cast<int>(out.shape.size()); ++j) {
      const absl::Span<const int64_t> shape = out.shape;
      if (j == out.batch_axis || shape[j] != size) continue;
      if (NumElements(shape.first(j)) != NumElements(shape.first(out.batch_axis))) continue;
      return absl::InvalidArgumentError(absl::StrCat(what, ", and axes ", std::min(j, out.batch_axis),
                                                     " and ", std::max(j, out.batch_axis),
                                                     " of the result could both be the batch, ", where));
    }
    target->assign(wanted.begin(), wanted.end());
  } else {
    (*target)[entry] = wanted[out.batch_axis];
  }
  replaced_.push_back(absl::StrCat(spec.name, " (", spec.op, ", axis ", out.batch_axis, ")"));
  spec.inputs[k] = AddInts(graph, absl::StrCat(operand->name(), "/samples"), *target);
  return absl::OkStatus();
}

absl::Status BakedBatch::RefitCount(Graph& graph, NodeSpec& spec, const NodeRecord& exported) {
  if (!spec.domain.empty() || (spec.op != "Div" && spec.op != "Mul")) return absl::OkStatus();
  for (int i = 0; i < 2; ++i) {
    Value* operand = spec.inputs[i];
    if (operand->kind() != ValueKind::kParameter && !IsLiteral(operand, exported.inputs[i])) continue;
    ASSIGN_OR_RETURN(const std::optional<double> count,
                     reduced_.Rescaled(spec, i, exported_->samples, samples_));
    if (!count) continue;
    Value* number = AddNumberLike(graph, *operand, *count);
    if (!number) {
      return absl::InvalidArgumentError(absl::StrCat("operand ", i, " '", operand->name(), "' ",
                                                     ToString(operand->type), " counts the samples of ",
                                                     Samples()));
    }
    replaced_.push_back(absl::StrCat(spec.name, " (", spec.op, " by ", *count, ")"));
    spec.inputs[i] = number;
  }
  return absl::OkStatus();
}

absl::Status BakedBatch::RefitOperands(Graph& graph, NodeSpec& spec, const NodeRecord& exported) {
  if (spec.op == "Squeeze" && spec.inputs.size() == 1 && spec.inputs[0]->batch_axis >= 0) {
    // Without axes it would take away a batch of 1 as well.
    std::vector<int64_t> axes;
    for (int j = 0; j < static_cast<int>(exported.inputs[0].shape.size()); ++j) {
      if (exported.inputs[0].shape[j] == 1) axes.push_back(j);
    }
    if (exported_->samples > 1) spec.inputs.push_back(AddInts(graph, "axes", axes));
    return absl::OkStatus();
  }
  const bool recurrent = IsRecurrent(spec.op);
  const ValueRecord& leads = recurrent ? exported.inputs[0] : exported.outputs[0];
  if (leads.batch_axis < 0) return absl::OkStatus();
  const int64_t size = leads.shape[leads.batch_axis];
  for (int i = 0; i < static_cast<int>(spec.inputs.size()); ++i) {
    Value* operand = spec.inputs[i];
    if (!operand || operand->batch_axis >= 0 || operand->type.shape != exported.inputs[i].shape) continue;
    const int axis = SampleAxis(spec, exported, i);
    if (axis < 0 || axis >= static_cast<int>(operand->type.shape.size()) ||
        operand->type.shape[axis] != size || Scaled(size) == size ||
        (size == 1 && IsBroadcast(spec.op, spec.domain))) {
      continue;
    }
    Value*& rows = rows_[{operand, axis}];
    if (!rows) {
      if (!IsUniform(operand, axis)) {
        return absl::InvalidArgumentError(
            absl::StrCat("operand ", i, " '", operand->name(), "' ", ToString(operand->type), " has ", size,
                         " entries along axis ", axis, ", one for each sample of ", Samples(),
                         ", and that they are equal cannot be shown"));
      }
      ASSIGN_OR_RETURN(rows, UniformRows(graph, operand, axis, Scaled(size)));
      replaced_.push_back(absl::StrCat(
          operand->name(), " (axis ", axis,
          size > 1 && operand->kind() == ValueKind::kParameter ? ", no longer learns" : "", ")"));
    }
    spec.inputs[i] = rows;
  }
  return absl::OkStatus();
}

absl::Status BakedBatch::Compare(const NodeSpec& spec, const NodeRecord& exported,
                                 const std::vector<TensorType>& types) const {
  const Value* data = spec.inputs.empty() ? nullptr : spec.inputs[0];
  if (data && data->batch_axis >= 0 && PicksEntries(spec, exported, data->batch_axis) &&
      exported.outputs[0].batch_axis < 0 && written_ > 0 && written_ != samples_) {
    return absl::InvalidArgumentError(absl::StrCat("it picks samples, axis ", data->batch_axis,
                                                   " of operand '", data->name(), "', by their numbers in ",
                                                   Samples()));
  }
  for (size_t k = 0; k < std::min(types.size(), exported.outputs.size()); ++k) {
    const ValueRecord& out = exported.outputs[k];
    if (out.batch_axis < 0 || types[k].shape == Scaled(out)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "a size in the model is written for ", Samples(), ": result ", k, " is ", ToString(out.shape),
        " for ", exported_->samples, " sample(s), axis ", out.batch_axis, " being the batch, but would be ",
        ToString(types[k].shape), " and not ", ToString(Scaled(out)), " for ", samples_));
  }
  return absl::OkStatus();
}

void BakedBatch::Place(Node& node, const std::string& name) {
  SetBatchAxes(node);
  if (recording_) {
    record_.Add(node, name);
    return;
  }
  // Where a single sample went, many samples show. The rule keeps what may be.
  if (compared_ && !compared_->outputs.empty() && node.output(0) && node.output(0)->batch_axis < 0) {
    node.output(0)->batch_axis = compared_->outputs[0].batch_axis;
    SetBatchAxes(node);
  }
  if (exported_) reduced_.Place(node, samples_);
  if (exported_ || !node.domain().empty() || node.outputs().empty() || !node.output(0)) return;
  const auto batched = std::find_if(node.inputs().begin(), node.inputs().end(),
                                    [](const Value* input) { return input && input->batch_axis >= 0; });
  if (batched == node.inputs().end()) return;
  const Value* data = *batched;
  const Value& out = *node.output(0);
  const bool lost = out.batch_axis < 0;
  if (node.Is("Reshape")) {
    const auto target = ConstantInts(node.input(1));
    const bool merged = !lost && out.type.shape[out.batch_axis] != data->type.shape[data->batch_axis];
    // -1 and 0 grow with the batch.
    if (target && (lost || (merged && (*target)[out.batch_axis] > 0))) {
      doubtful_ = true;
      Suggest(target->empty() ? 0 : target->front());
    }
  } else if (node.Is("Squeeze") || node.Is("Flatten") || TargetOperand(node.op()) >= 0 ||
             (samples_ == 1 && IsBroadcast(node.op(), ""))) {
    doubtful_ |= lost;
  }
}

// A target with as many elements as some number of samples has, or sizes of operands that are no samples.
void BakedBatch::Suspect(const NodeSpec& spec) {
  const auto target =
      spec.op == "Reshape" && spec.inputs.size() > 1 ? ConstantInts(spec.inputs[1]) : std::nullopt;
  const Value* data = spec.inputs.empty() ? nullptr : spec.inputs[0];
  if (target && data && data->batch_axis >= 0) {
    int64_t elements = 1;
    for (int64_t dim : *target)
      elements = dim > 0 && elements < (int64_t{1} << 40) / dim ? elements * dim : 0;
    const int64_t each = data->type.elements() / std::max<int64_t>(samples_, 1);
    if (each > 0 && elements % each == 0) candidates_.insert(candidates_.begin(), elements / each);
    return;
  }
  for (const Value* input : spec.inputs) {
    if (!input || input->batch_axis >= 0) continue;
    for (int64_t dim : input->type.shape) Suggest(dim);
  }
}

void BakedBatch::Suggest(int64_t samples) {
  if (samples < 1 || samples == samples_ || candidates_.size() >= kMostCandidates) return;
  if (std::find(candidates_.begin(), candidates_.end(), samples) == candidates_.end())
    candidates_.push_back(samples);
}

std::string BakedBatch::Note() const {
  if (replaced_.empty()) return "";
  const size_t count = replaced_.size();
  const std::vector<std::string> named(replaced_.begin(), replaced_.begin() + std::min(count, kMostNamed));
  return absl::StrCat("the model is written for a batch of ", exported_->samples, "; made for ", samples_,
                      ": ", absl::StrJoin(named, ", "),
                      count > kMostNamed ? absl::StrCat(" and ", count - kMostNamed, " more") : "");
}

}  // namespace pipec
