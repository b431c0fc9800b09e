// Every claim of a batch axis against two independent witnesses, over ONNX's own single-node models: schema
// inference (with twice the samples, the claimed axis of the result is twice as large, and no other axis
// changes), and the CPU kernels (another first sample changes the first sample of the result only).
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/read/attribute_proto.h"
#include "compiler/onnx/read/read_model.h"
#include "compiler/onnx/read/tensor_data.h"
#include "compiler/onnx/schema/infer.h"
#include "compiler/ops/op_info.h"
#include "gtest/gtest.h"
#include "onnx/defs/schema.h"
#include "passes/evaluate.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

// One node of the newest form with all its operands.
struct Sample {
  std::string op;
  Attributes attributes;
  std::vector<Tensor> inputs;  // kUndefined: absent
  int outputs = 0;
};

bool IsNewest(const std::string& op, int opset) {
  const auto* written = onnx::OpSchemaRegistry::Schema(op, opset, "");
  const auto* newest = onnx::OpSchemaRegistry::Schema(op, "");
  return written && newest && written->SinceVersion() == newest->SinceVersion();
}

// Whether the folder holds a node that the compiler can have as such.
bool Read(const fs::path& folder, Sample& sample) {
  auto model = ReadModel((folder / "model.onnx").string());
  if (!model.ok() || model->graph().node_size() != 1) return false;
  const auto& node = model->graph().node(0);
  if (!node.domain().empty() || !IsNewest(node.op_type(), model->opset_import(0).version())) return false;
  sample = {.op = node.op_type(), .outputs = node.output_size()};
  for (const auto& attribute : node.attribute()) {
    auto value = FromProto(attribute);
    if (!value.ok()) return false;
    sample.attributes.Set(attribute.name(), *value);
  }
  int file = 0;
  for (const std::string& name : node.input()) {
    sample.inputs.emplace_back();
    if (name.empty()) continue;
    onnx::TensorProto proto;
    std::ifstream in(folder / "test_data_set_0" / absl::StrCat("input_", file++, ".pb"), std::ios::binary);
    if (!proto.ParseFromIstream(&in)) return false;
    auto tensor = TakeInlineTensor(proto);
    if (!tensor.ok()) return false;
    sample.inputs.back() = *std::move(tensor);
  }
  return true;
}

// What these make is as large as a number in the model says, samples or not.
bool IsSizedByNumbers(const Sample& sample) {
  const std::string& op = sample.op;
  return op == "Reshape" || op == "Slice" || (op == "Resize" && sample.inputs.size() == 4) ||
         op == "AffineGrid" || op == "CenterCropPad" || (op == "MaxUnpool" && sample.inputs.size() == 3);
}

// Operand -> axis along which samples are said to lie.
using Axes = std::map<int, int>;

// The node with batch axes on its operands, `factor` times as many samples as the model has.
struct Built {
  Graph graph;
  NodeSpec spec;
  std::vector<TensorType> types;

  bool Build(const Sample& sample, const Axes& axes, int factor) {
    spec = {.op = sample.op, .name = "n", .attributes = sample.attributes};
    for (size_t i = 0; i < sample.inputs.size(); ++i) {
      TensorType type = sample.inputs[i].type;
      if (type.dtype == DType::kUndefined) {
        spec.inputs.push_back(nullptr);
        continue;
      }
      auto it = axes.find(i);
      if (it == axes.end()) {
        Value* value = graph.AddValue(ValueKind::kConstant, "c", type);
        value->data = sample.inputs[i].data;
        spec.inputs.push_back(value);
        continue;
      }
      type.shape[it->second] *= factor;
      Value* value = graph.AddValue(ValueKind::kInput, "x", type);
      value->batch_axis = it->second;
      spec.inputs.push_back(value);
    }
    while (!spec.inputs.empty() && !spec.inputs.back()) spec.inputs.pop_back();
    auto inferred = InferTypes(spec, sample.outputs);
    if (!inferred.ok()) return false;
    types = *std::move(inferred);
    return true;
  }
  Node* Add() {
    spec.outputs = types;
    return graph.AddNode(spec);
  }
};

// The contents with sample 0 replaced by the last sample.
std::string Replaced(const std::string& bytes, const TensorType& type, int axis) {
  const int64_t count = type.shape[axis];
  const int64_t block = NumElements(absl::MakeSpan(type.shape).subspan(axis + 1)) * SizeOf(type.dtype);
  std::string changed = bytes;
  for (size_t start = 0; start < bytes.size(); start += count * block) {
    changed.replace(start, block, bytes, start + (count - 1) * block, block);
  }
  return changed;
}

// Whether two results differ in sample 0 at most.
bool DifferInFirstOnly(const std::string& a, const std::string& b, const TensorType& type, int axis,
                       int64_t samples) {
  const int64_t inner = NumElements(absl::MakeSpan(type.shape).subspan(axis + 1)) * SizeOf(type.dtype);
  const int64_t row = inner * type.shape[axis], first = row / samples;
  for (int64_t start = 0; start < static_cast<int64_t>(a.size()); start += row) {
    if (a.compare(start + first, row - first, b, start + first, row - first) != 0) return false;
  }
  return true;
}

class Witnesses {
 public:
  void Check(const std::string& test, const Sample& sample, const Axes& axes) {
    const int64_t samples = sample.inputs[axes.begin()->first].type.shape[axes.begin()->second];
    Built built;
    // One sample tells nothing, but for operand 0 growing to two.
    const bool leads = axes.contains(0) && axes.at(0) == 0;
    if (samples < (leads ? 1 : 2) || !built.Build(sample, axes, 1)) return;
    Node* node = built.Add();
    std::vector<int> claims;
    for (int k = 0; k < sample.outputs; ++k) claims.push_back(node->output(k) ? BatchAxisOf(*node, k) : -1);
    if (*std::max_element(claims.begin(), claims.end()) < 0) return;
    std::string what = absl::StrCat(test, " ", sample.op);
    for (auto [i, axis] : axes) absl::StrAppend(&what, " operand ", i, " axis ", axis);
    CheckGrowth(what, sample, axes, built.types, claims);
    CheckIndependence(what, sample, axes, samples, *node, claims);
  }

  std::map<std::string, int> grown, independent;

 private:
  void CheckGrowth(const std::string& what, const Sample& sample, const Axes& axes,
                   const std::vector<TensorType>& types, const std::vector<int>& claims) {
    Built twice;
    if (IsSizedByNumbers(sample) || !twice.Build(sample, axes, 2)) return;
    for (int k = 0; k < sample.outputs; ++k) {
      if (claims[k] < 0) continue;
      ASSERT_LT(claims[k], types[k].shape.size()) << what;
      if (IsHeld(sample, axes, types[k].shape[claims[k]])) continue;
      Shape wanted = types[k].shape;
      wanted[claims[k]] *= 2;
      EXPECT_EQ(twice.types[k].shape, wanted) << what << " result " << k << " " << ToString(types[k]);
      ++grown[sample.op];
    }
  }

  // Whether an operand without samples is as large along some axis as the result along the batch: it is not
  // twice as large then.
  static bool IsHeld(const Sample& sample, const Axes& axes, int64_t size) {
    for (size_t i = 0; i < sample.inputs.size(); ++i) {
      const Shape& shape = sample.inputs[i].type.shape;
      if (size > 1 && !axes.contains(i) && std::find(shape.begin(), shape.end(), size) != shape.end())
        return true;
    }
    return false;
  }

  void CheckIndependence(const std::string& what, const Sample& sample, const Axes& axes, int64_t samples,
                         const Node& node, const std::vector<int>& claims) {
    // BatchNormalization mixes in training, as GPipe's does; its samples stay where they are.
    if (samples < 2 || !HasKernel("cpu", sample.op, "") || sample.attributes.Int("training_mode") == 1)
      return;
    std::vector<std::string> changed(sample.inputs.size());
    std::vector<const std::string*> before, after;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Tensor& tensor = sample.inputs[i];
      before.push_back(tensor.data.bytes.get());
      after.push_back(tensor.data.bytes.get());
      auto it = axes.find(i);
      if (it == axes.end()) continue;
      changed[i] = Replaced(*tensor.data.bytes, tensor.type, it->second);
      after.back() = &changed[i];
    }
    auto a = Evaluate(node, before), b = Evaluate(node, after);
    if (!a.ok() || !b.ok()) return;
    for (int k = 0; k < sample.outputs; ++k) {
      if (claims[k] < 0) continue;
      EXPECT_TRUE(DifferInFirstOnly((*a)[k], (*b)[k], node.output(k)->type, claims[k], samples))
          << what << " result " << k << " axis " << claims[k];
      ++independent[sample.op];
    }
  }
};

TEST(BatchRules, EveryClaimHoldsInOnnxsOwnModels) {
  Witnesses witnesses;
  for (const auto& entry : fs::directory_iterator(fs::path(PIPEC_ONNX_DATA) / "node")) {
    Sample sample;
    if (!Read(entry.path(), sample)) continue;
    const std::string test = entry.path().filename().string();
    std::set<Axes> cases;
    for (size_t i = 0; i < sample.inputs.size(); ++i) {
      const Shape& shape = sample.inputs[i].type.shape;
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        cases.insert(Axes{{static_cast<int>(i), static_cast<int>(axis)}});
        // With every operand that has as many entries along the same axis, or along that one counted from the
        // back.
        Axes front, back;
        for (size_t j = 0; j < sample.inputs.size(); ++j) {
          const Shape& other = sample.inputs[j].type.shape;
          const int64_t from_back = axis + other.size() - shape.size();
          if (axis < other.size() && other[axis] == shape[axis]) front[j] = axis;
          if (from_back >= 0 && from_back < static_cast<int64_t>(other.size()) &&
              other[from_back] == shape[axis]) {
            back[j] = from_back;
          }
        }
        cases.insert({front, back});
      }
    }
    for (const Axes& axes : cases) witnesses.Check(test, sample, axes);
  }
  std::string ops;
  for (const auto& [op, count] : witnesses.grown) absl::StrAppend(&ops, op, " ");
  printf("%zu ops by schema: %s\n%zu ops by kernel\n", witnesses.grown.size(), ops.c_str(),
         witnesses.independent.size());
  // Without claims nothing would be checked.
  for (const char* op : {"Add",
                         "Where",
                         "Clip",
                         "PRelu",
                         "MatMul",
                         "Gemm",
                         "Einsum",
                         "QLinearMatMul",
                         "Conv",
                         "ConvTranspose",
                         "MaxPool",
                         "AveragePool",
                         "GlobalAveragePool",
                         "Resize",
                         "DepthToSpace",
                         "GridSample",
                         "Col2Im",
                         "LSTM",
                         "GRU",
                         "RNN",
                         "Attention",
                         "RotaryEmbedding",
                         "ReverseSequence",
                         "Softmax",
                         "LayerNormalization",
                         "RMSNormalization",
                         "InstanceNormalization",
                         "BatchNormalization",
                         "ReduceSum",
                         "ReduceL2",
                         "ArgMax",
                         "CumSum",
                         "TopK",
                         "Transpose",
                         "Squeeze",
                         "Unsqueeze",
                         "Expand",
                         "Pad",
                         "Slice",
                         "Concat",
                         "Split",
                         "Gather",
                         "GatherElements",
                         "GatherND",
                         "ScatterElements",
                         "ScatterND",
                         "OneHot",
                         "Trilu",
                         "DequantizeLinear",
                         "DFT",
                         "Det",
                         "SoftmaxCrossEntropyLoss"}) {
    EXPECT_GT(witnesses.grown[op] + witnesses.independent[op], 0) << op;
  }
}

}  // namespace
}  // namespace pipec
