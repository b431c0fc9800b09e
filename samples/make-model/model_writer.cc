#include "samples/make-model/model_writer.h"

#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status.h"

namespace pipec::samples {
namespace {

constexpr int64_t kOpset = 21;
constexpr int64_t kInlineLimit = 1000000000;
constexpr int64_t kMostElements = int64_t{1} << 48;
// A page, so that external tensors can be mapped one by one.
constexpr int64_t kAlignment = 4096;

void SetShape(onnx::TypeProto* type, onnx::TensorProto::DataType element, const std::vector<int64_t>& shape) {
  onnx::TypeProto::Tensor* tensor = type->mutable_tensor_type();
  tensor->set_elem_type(element);
  tensor->mutable_shape();
  for (int64_t dim : shape) {
    auto* d = tensor->mutable_shape()->add_dim();
    if (dim < 0) {
      d->set_dim_param("batch");
    } else {
      d->set_dim_value(dim);
    }
  }
}

void AddExternal(onnx::TensorProto* tensor, const std::string& key, const std::string& value) {
  auto* entry = tensor->add_external_data();
  entry->set_key(key);
  entry->set_value(value);
}

}  // namespace

ModelWriter::ModelWriter(const std::string& name, const WriterOptions& options)
    : options_(options), random_(options.seed) {
  model_.set_ir_version(10);
  model_.set_producer_name("pipec make-model");
  auto* opset = model_.add_opset_import();
  opset->set_domain("");
  opset->set_version(kOpset);
  graph_ = model_.mutable_graph();
  graph_->set_name(name);
}

void ModelWriter::SetOpset(int64_t version) { model_.mutable_opset_import(0)->set_version(version); }

std::string ModelWriter::Input(const std::string& name, onnx::TensorProto::DataType type,
                               const std::vector<int64_t>& shape) {
  auto* input = graph_->add_input();
  input->set_name(name);
  SetShape(input->mutable_type(), type, shape);
  return name;
}

void ModelWriter::Output(const std::string& name, const std::vector<int64_t>& shape) {
  auto* output = graph_->add_output();
  output->set_name(name);
  SetShape(output->mutable_type(), onnx::TensorProto::FLOAT, shape);
}

std::string ModelWriter::Parameter(const std::string& name, const std::vector<int64_t>& shape,
                                   Initial initial) {
  onnx::TensorProto* tensor = graph_->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  int64_t elements = 1;
  for (int64_t dim : shape) {
    tensor->add_dims(dim);
    if (__builtin_mul_overflow(elements, dim, &elements) || elements > kMostElements) {
      too_large_ = absl::InvalidArgumentError(
          absl::StrCat("parameter '", name, "' has more than ", kMostElements, " elements"));
      elements = 0;
    }
  }
  weights_.push_back({tensor, initial, elements * static_cast<int64_t>(sizeof(float))});
  return name;
}

onnx::TensorProto* ModelWriter::Constant(const std::string& name, onnx::TensorProto::DataType type,
                                         const std::vector<int64_t>& shape) {
  auto* attribute = Node("Constant", name, {})->add_attribute();
  attribute->set_name("value");
  attribute->set_type(onnx::AttributeProto::TENSOR);
  onnx::TensorProto* tensor = attribute->mutable_t();
  tensor->set_data_type(type);
  for (int64_t dim : shape) tensor->add_dims(dim);
  return tensor;
}

std::string ModelWriter::ScalarConstant(const std::string& name, float value) {
  Constant(name, onnx::TensorProto::FLOAT, {})->add_float_data(value);
  return name;
}

std::string ModelWriter::BoolConstant(const std::string& name, bool value) {
  Constant(name, onnx::TensorProto::BOOL, {})->add_int32_data(value);
  return name;
}

std::string ModelWriter::IntsConstant(const std::string& name, const std::vector<int64_t>& values) {
  onnx::TensorProto* tensor = Constant(name, onnx::TensorProto::INT64, {static_cast<int64_t>(values.size())});
  for (int64_t value : values) tensor->add_int64_data(value);
  return name;
}

std::string ModelWriter::FloatsConstant(const std::string& name, const std::vector<int64_t>& shape,
                                        const std::vector<float>& values) {
  onnx::TensorProto* tensor = Constant(name, onnx::TensorProto::FLOAT, shape);
  tensor->mutable_float_data()->Add(values.begin(), values.end());
  return name;
}

std::string ModelWriter::CausalMask(const std::string& name, int64_t n) {
  std::string bytes(n * n, 0);
  for (int64_t row = 0; row < n; ++row) std::memset(&bytes[row * n], 1, row + 1);
  Constant(name, onnx::TensorProto::BOOL, {1, 1, n, n})->set_raw_data(std::move(bytes));
  return name;
}

onnx::NodeProto* ModelWriter::Node(const std::string& op, const std::string& name,
                                   const std::vector<std::string>& inputs, int outputs) {
  onnx::NodeProto* node = graph_->add_node();
  node->set_op_type(op);
  node->set_name(name);
  for (const std::string& input : inputs) node->add_input(input);
  for (int k = 0; k < outputs; ++k) node->add_output(outputs == 1 ? name : absl::StrCat(name, "_", k));
  return node;
}

std::string ModelWriter::Op(const std::string& op, const std::string& name,
                            const std::vector<std::string>& inputs) {
  return Node(op, name, inputs)->output(0);
}

void ModelWriter::SetInt(onnx::NodeProto* node, const std::string& name, int64_t value) {
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

void ModelWriter::SetFloat(onnx::NodeProto* node, const std::string& name, float value) {
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_f(value);
}

void ModelWriter::SetInts(onnx::NodeProto* node, const std::string& name,
                          const std::vector<int64_t>& values) {
  auto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (int64_t value : values) attribute->add_ints(value);
}

std::string ModelWriter::Draw(const Weight& weight) {
  std::vector<float> values(weight.bytes / sizeof(float),
                            weight.initial.kind == Initial::kOnes ? 1.0f : 0.0f);
  // Written out, not std's distributions, whose draws differ between libraries.
  const auto uniform = [this] { return static_cast<double>(random_() >> 11) * 0x1p-53; };
  for (float& value : values) {
    if (weight.initial.kind == Initial::kUniform) {
      value = static_cast<float>(weight.initial.scale * (2 * uniform() - 1));
    } else if (weight.initial.kind == Initial::kNormal) {
      const double radius = std::sqrt(-2 * std::log(1 - uniform()));
      value = static_cast<float>(weight.initial.scale * radius * std::cos(2 * std::numbers::pi * uniform()));
    }
  }
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

absl::Status ModelWriter::Write(const std::string& file, Written* written) {
  RETURN_IF_ERROR(too_large_);
  written->Add(file);
  int64_t total = 0;
  for (const Weight& weight : weights_) total += weight.bytes;
  const bool external = options_.no_weights || total > kInlineLimit;
  const std::string data_file = file + ".data";
  std::optional<AtomicFile> data;
  if (external && !options_.no_weights) {
    written->Add(data_file);
    ASSIGN_OR_RETURN(AtomicFile created, AtomicFile::Create(data_file));
    data.emplace(std::move(created));
  }
  int64_t offset = 0;
  for (const Weight& weight : weights_) {
    if (!external) {
      weight.tensor->set_raw_data(Draw(weight));
      continue;
    }
    weight.tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    AddExternal(weight.tensor, "location", data_file.substr(data_file.rfind('/') + 1));
    AddExternal(weight.tensor, "offset", absl::StrCat(offset));
    AddExternal(weight.tensor, "length", absl::StrCat(weight.bytes));
    const int64_t end = (offset + weight.bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (data) {
      RETURN_IF_ERROR(data->Write(Draw(weight)));
      RETURN_IF_ERROR(data->Write(std::string(end - offset - weight.bytes, '\0')));
    }
    offset = end;
  }
  if (data) RETURN_IF_ERROR(data->Commit());
  return WriteFileAtomically(file, model_.SerializeAsString());
}

}  // namespace pipec::samples
