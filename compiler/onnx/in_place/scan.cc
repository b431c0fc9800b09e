// Scan: a body for every entry along an axis.
//
//   s', y = Scan<body, num_scan_inputs = 1>(s, x)   ->   x0, x1 = entries of x;  body(s, x0) -> s1, y0;
//                                                        body(s1, x1) -> s', y1;  y = [y0, y1]
//
// In opset 8 every operand has an axis of samples in front, over which the whole is repeated.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/in_place/in_place.h"
#include "compiler/onnx/in_place/known_numbers.h"
#include "compiler/onnx/in_place/stack_tensors.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

struct ScanForm {
  const onnx::GraphProto* body;
  int states;
  std::vector<int64_t> input_axes, input_directions, output_axes, output_directions;

  int inputs() const { return static_cast<int>(input_axes.size()); }
  int outputs() const { return static_cast<int>(output_axes.size()); }
};

// One entry per operand or result, 0 where the attribute is absent.
absl::StatusOr<std::vector<int64_t>> PerOperand(const Attributes& attributes, absl::string_view name,
                                                int count) {
  if (!attributes.Has(name)) return std::vector<int64_t>(count, 0);
  std::vector<int64_t> values = attributes.Ints(name);
  if (static_cast<int>(values.size()) == count) return values;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " has ", Counted(values.size(), "entry", "entries"), ", wanted ", count));
}

absl::StatusOr<ScanForm> ReadForm(const InPlaceNode& node, int operands) {
  ScanForm form;
  ASSIGN_OR_RETURN(form.body, node.Body("body"));
  const int64_t inputs = node.attributes.Int("num_scan_inputs");
  form.states = static_cast<int>(operands - inputs);
  if (inputs < 1 || inputs > operands || form.body->input_size() != operands ||
      form.body->output_size() < form.states || form.body->output_size() < node.outputs) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", Counted(operands, "operand", "operands"), ", ", inputs, " of them to scan, and ",
        node.outputs, " results, but its body has ", Counted(form.body->input_size(), "input", "inputs"),
        " and ", Counted(form.body->output_size(), "output", "outputs")));
  }
  const int outputs = form.body->output_size() - form.states;
  const Attributes& a = node.attributes;
  ASSIGN_OR_RETURN(form.input_axes, PerOperand(a, "scan_input_axes", inputs));
  ASSIGN_OR_RETURN(form.input_directions,
                   PerOperand(a, a.Has("directions") ? "directions" : "scan_input_directions", inputs));
  ASSIGN_OR_RETURN(form.output_axes, PerOperand(a, "scan_output_axes", outputs));
  ASSIGN_OR_RETURN(form.output_directions, PerOperand(a, "scan_output_directions", outputs));
  return form;
}

// The entries of every scanned operand in the order in which the body meets them.
absl::StatusOr<std::vector<std::vector<Value*>>> Entries(const ScanForm& form,
                                                         const std::vector<Meaning>& operands,
                                                         const std::string& name, InPlaceImporter& importer) {
  std::vector<std::vector<Value*>> entries;
  for (int k = 0; k < form.inputs(); ++k) {
    ASSIGN_OR_RETURN(Value * scanned, TensorOf(operands[form.states + k]));
    ASSIGN_OR_RETURN(std::vector<Value*> parts,
                     Unstack(importer, absl::StrCat(name, "/", form.body->input(form.states + k).name()),
                             scanned, form.input_axes[k]));
    if (form.input_directions[k] != 0) std::reverse(parts.begin(), parts.end());
    entries.push_back(std::move(parts));
    if (entries.back().size() != entries.front().size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("scans ", Counted(entries.front().size(), "entry", "entries"), " of one operand and ",
                       entries.back().size(), " of another"));
    }
  }
  return entries;
}

absl::StatusOr<std::vector<Meaning>> Run(const ScanForm& form, std::vector<Meaning> operands,
                                         const std::string& name, InPlaceImporter& importer) {
  ASSIGN_OR_RETURN(const std::vector<std::vector<Value*>> entries, Entries(form, operands, name, importer));
  std::vector<std::vector<Meaning>> stacks(form.outputs());
  for (size_t t = 0; t < entries.front().size(); ++t) {
    for (int k = 0; k < form.inputs(); ++k) operands[form.states + k] = entries[k][t];
    ASSIGN_OR_RETURN(std::vector<Meaning> results,
                     importer.ImportBody(*form.body, absl::StrCat(name, "/", t, "/"), operands));
    for (int k = 0; k < form.states; ++k) operands[k] = std::move(results[k]);
    for (int k = 0; k < form.outputs(); ++k) stacks[k].push_back(std::move(results[form.states + k]));
  }
  operands.resize(form.states);
  for (int k = 0; k < form.outputs(); ++k) {
    if (form.output_directions[k] != 0) std::reverse(stacks[k].begin(), stacks[k].end());
    const onnx::ValueInfoProto& declared = form.body->output(form.states + k);
    ASSIGN_OR_RETURN(Meaning stacked, StackResults(importer, absl::StrCat(name, "/", declared.name()),
                                                   stacks[k], declared, form.output_axes[k]));
    operands.push_back(std::move(stacked));
  }
  return operands;
}

// Opset 8: (sequence_lens, states..., scanned...), all with the samples on axis 0.
absl::StatusOr<std::vector<Meaning>> RunBatch(const InPlaceNode& node, InPlaceImporter& importer) {
  if (!std::holds_alternative<Absent>(node.operand(0))) {
    return absl::UnimplementedError(
        "scans a number of entries that differs between samples (sequence_lens), which is not supported; "
        "export with "
        "opset 9 or newer");
  }
  const int operands = static_cast<int>(node.operands.size()) - 1;
  ASSIGN_OR_RETURN(const ScanForm form, ReadForm(node, operands));
  std::vector<std::vector<Meaning>> samples;
  for (int i = 0; i < operands; ++i) {
    ASSIGN_OR_RETURN(Value * batch, TensorOf(node.operand(1 + i)));
    ASSIGN_OR_RETURN(
        const std::vector<Value*> rows,
        Unstack(importer, absl::StrCat(node.name, "/", form.body->input(i).name(), "/samples"), batch, 0));
    if (i == 0) samples.resize(rows.size());
    if (samples.size() != rows.size() || rows.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("operand ", 1 + i, " has ", rows.size(),
                                                     " samples, wanted ", samples.size(), ", at least 1"));
    }
    for (size_t b = 0; b < rows.size(); ++b) samples[b].push_back(rows[b]);
  }
  std::vector<std::vector<Meaning>> results(form.body->output_size());
  for (size_t b = 0; b < samples.size(); ++b) {
    ASSIGN_OR_RETURN(std::vector<Meaning> one,
                     Run(form, samples[b], absl::StrCat(node.name, "/sample", b), importer));
    for (size_t k = 0; k < one.size(); ++k) results[k].push_back(std::move(one[k]));
  }
  std::vector<Meaning> stacked;
  for (size_t k = 0; k < results.size(); ++k) {
    const onnx::ValueInfoProto& declared = form.body->output(static_cast<int>(k));
    ASSIGN_OR_RETURN(Meaning batch, StackResults(importer, absl::StrCat(node.name, "/", declared.name()),
                                                 results[k], declared, 0));
    stacked.push_back(std::move(batch));
  }
  return stacked;
}

absl::StatusOr<std::vector<Meaning>> ImportScan(const InPlaceNode& node, InPlaceImporter& importer) {
  if (node.opset < 9) return RunBatch(node, importer);
  ASSIGN_OR_RETURN(const ScanForm form, ReadForm(node, static_cast<int>(node.operands.size())));
  return Run(form, node.operands, node.name, importer);
}

constexpr InPlaceOp kOps[] = {{"Scan", ImportScan}};

}  // namespace

absl::Span<const InPlaceOp> ScanOps() { return kOps; }

}  // namespace pipec
