// NodeImporter: ops whose results have as many entries as the data say (counted_axes.h).
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/import_nodes.h"
#include "compiler/onnx/in_place/known_numbers.h"
#include "compiler/onnx/schema/emit_node.h"
#include "compiler/onnx/schema/infer.h"
#include "runtime/base/status.h"

namespace pipec {

absl::StatusOr<std::vector<Value*>> NodeImporter::EmitSizedByData(NodeSpec spec, const SizedByData& sized,
                                                                  int outputs, std::vector<bool> wanted) {
  if (counted_.First(spec.inputs)) return counted_.Refusal(spec);
  // What the schema says against the operands; else that a size depends on data.
  const absl::Status depends = InferTypes(spec, outputs).status();
  if (!depends.ok() && !absl::IsUnimplemented(depends)) return depends;
  const bool known = std::all_of(spec.inputs.begin(), spec.inputs.end(), [](const Value* input) {
    return !input || input->kind() == ValueKind::kConstant;
  });
  if (!known && !options_.infers) return depends;
  std::vector<int> axes;
  for (int k = 0; k < outputs; ++k) axes.push_back(sized.axis(spec, k));
  const std::string name = spec.name;
  spec.domain = kPipecDomain;
  wanted.resize(sized.results, false);
  wanted.push_back(true);
  ASSIGN_OR_RETURN(std::vector<Value*> results, Emit(std::move(spec), sized.results + 1, wanted));
  Value* count = results.back();
  results.resize(outputs);
  const absl::StatusOr<int64_t> entries = KnownInt(count, "count");
  if (!entries.ok() && !options_.infers) return depends;
  for (int k = 0; k < outputs; ++k) {
    if (!results[k] || axes[k] < 0) continue;
    if (!entries.ok()) {
      counted_.Set(results[k], {axes[k], count, true});
      continue;
    }
    NodeSpec slice{.op = "Slice",
                   .name = absl::StrCat(name, "/entries"),
                   .inputs = {results[k], AddInts(graph_, absl::StrCat(name, "/first"), {0}),
                              AddInts(graph_, absl::StrCat(name, "/last"), {*entries}),
                              AddInts(graph_, absl::StrCat(name, "/axis"), {axes[k]})}};
    ASSIGN_OR_RETURN(const std::vector<Value*> exact, Emit(std::move(slice), 1, {true}));
    results[k] = exact[0];
  }
  return results;
}

absl::StatusOr<Value*> NodeImporter::ZeroBeyondCount(Value* value) {
  const Counted counted = *counted_.Find(value);
  const int64_t size = value->type.shape[counted.axis];
  std::vector<int64_t> places(size);
  std::iota(places.begin(), places.end(), 0);
  Value* place = AddInts(graph_, absl::StrCat(value->name(), "/place"), places);
  place->type.shape.resize(value->type.shape.size() - counted.axis, 1);
  Value* zero = graph_.AddConstant(absl::StrCat(value->name(), "/zero"), {value->type.dtype, {}},
                                   std::string(SizeOf(value->type.dtype), '\0'));
  const std::string name = absl::StrCat(value->name(), "/counted");
  ASSIGN_OR_RETURN(const std::vector<Value*> valid,
                   Emit({.op = "Less", .name = name, .inputs = {place, counted.count}}, 1, {true}));
  counted_.Set(valid[0], {0, counted.count});
  ASSIGN_OR_RETURN(const std::vector<Value*> results,
                   Emit({.op = "Where", .name = name, .inputs = {valid[0], value, zero}}, 1, {true}));
  counted_.Set(results[0], {counted.axis, counted.count, true});
  return results[0];
}

}  // namespace pipec
