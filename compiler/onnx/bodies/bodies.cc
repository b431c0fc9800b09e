#include "compiler/onnx/bodies/bodies.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/onnx/bodies/families.h"
#include "compiler/onnx/read/attribute_proto.h"

namespace pipec {
namespace {

const BodyRow* FindBody(absl::string_view op) {
  for (absl::Span<const BodyRow> family :
       {ActivationBodies(), AttentionBodies(), NormalizationBodies(), WindowBodies(), RecurrentBodies(),
        SelectionBodies(), SizedByDataBodies(), DropoutBodies(), LossBodies(), UpdateBodies()}) {
    for (const BodyRow& row : family) {
      if (row.op == op) return &row;
    }
  }
  return nullptr;
}

}  // namespace

bool HasBody(absl::string_view op) { return FindBody(op) != nullptr; }

std::vector<std::string> RunTimeScalars(absl::string_view op) {
  const BodyRow* row = FindBody(op);
  if (!row) return {};
  return absl::StrSplit(row->scalars, ' ', absl::SkipEmpty());
}

onnx::NodeProto HelperFunctions::Call(const Node& node) {
  const BodyRow& row = *FindBody(node.op());
  Body body(node, row.operands, row.scalars);
  row.write(body);
  onnx::FunctionProto function = body.Finish();
  function.set_domain(kPipecDomain);
  auto [known, is_new] = names_.try_emplace(absl::StrCat(node.op(), "\n", function.SerializeAsString()));
  if (is_new) {
    const int count = ++counts_[node.op()];
    known->second = count == 1 ? node.op() : absl::StrCat(node.op(), "_", count);
    function.set_name(known->second);
    functions_.push_back(std::move(function));
  }
  onnx::NodeProto call;
  call.set_name(node.name());
  call.set_op_type(known->second);
  call.set_domain(kPipecDomain);
  for (const Value* input : node.inputs()) call.add_input(input ? input->name() : "");
  for (std::string& scalar : RunTimeScalars(node.op())) call.add_input(std::move(scalar));
  for (const Value* output : node.outputs()) call.add_output(output ? output->name() : "");
  for (const auto& [name, value] : node.attributes) *call.add_attribute() = ToProto(name, value);
  return call;
}

void HelperFunctions::AddTo(onnx::ModelProto& model) const {
  for (const onnx::FunctionProto& function : functions_) *model.add_functions() = function;
}

}  // namespace pipec
