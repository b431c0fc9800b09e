#include "compiler/onnx/pytorch/pytorch_parameters.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "compiler/onnx/pytorch/parameter_editor.h"
#include "compiler/onnx/read/read_model.h"
#include "compiler/onnx/read/tensor_data.h"
#include "runtime/checkpoint/safetensors.h"

namespace pipec {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

const std::string kFolder = std::string(PIPEC_SOURCE_DIR) + "/tests/data/pytorch/";

struct Restored {
  onnx::ModelProto model;
  PyTorchParameters parameters;
};

Restored Restore(const std::string& model) {
  Restored restored;
  absl::StatusOr<onnx::ModelProto> read = ReadModel(kFolder + model + ".onnx");
  EXPECT_TRUE(read.ok()) << read.status();
  restored.model = *std::move(read);
  ExternalDataResolver external(kFolder, false, false);
  absl::StatusOr<PyTorchParameters> parameters = RestorePyTorchParameters(restored.model, external);
  EXPECT_TRUE(parameters.ok()) << parameters.status();
  restored.parameters = *std::move(parameters);
  return restored;
}

// "float32[2,3]", and the bytes.
using Tensors = std::map<std::string, std::pair<std::string, std::string>>;

// What a state_dict may have: not the integers of shape arithmetic.
Tensors StateOf(const Restored& restored) {
  Tensors tensors;
  for (const auto& proto : restored.model.graph().initializer()) {
    const absl::StatusOr<TensorType> type = TypeOf(proto);
    EXPECT_TRUE(type.ok());
    const PyTorchParameters& parameters = restored.parameters;
    const bool kept = parameters.kept.contains(proto.name()) || parameters.buffers.contains(proto.name()) ||
                      parameters.scalars->contains(proto.name());
    if (!kept && (!IsFloat(type->dtype) || type->shape.empty())) continue;
    const auto tied = restored.parameters.tied.find(proto.name());
    std::string bytes;
    if (tied != restored.parameters.tied.end()) {
      for (const auto& original : restored.model.graph().initializer()) {
        if (original.name() == tied->second) bytes = *ReadInlineTensor(original)->data.bytes;
      }
    } else {
      bytes = *ReadInlineTensor(proto)->data.bytes;
    }
    tensors[proto.name()] = {ToString(*type), bytes};
  }
  return tensors;
}

Tensors StateDict(const std::string& name) {
  Tensors tensors;
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(kFolder + name + ".safetensors");
  EXPECT_TRUE(file.ok()) << file.status();
  for (const auto& entry : file->entries()) {
    tensors[entry.name] = {ToString(entry.type), std::string(file->Bytes(entry))};
  }
  return tensors;
}

std::vector<std::string> Names(const Tensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

class StateDictTest : public testing::TestWithParam<const char*> {};

TEST_P(StateDictTest, NamesShapesAndValuesAreThoseOfTheModule) {
  const std::string model = GetParam();
  const std::string fresh = model.find("-fresh") == std::string::npos ? "" : "-fresh";
  const Tensors got = StateOf(Restore(model)), want = StateDict(model.substr(0, model.find('-')) + fresh);
  EXPECT_EQ(Names(got), Names(want));
  for (const auto& [name, tensor] : want) {
    if (!got.contains(name)) continue;
    EXPECT_EQ(got.at(name).first, tensor.first) << name;
    // The TorchScript exporter runs the module, which in training mode moves its statistics.
    if (model == "resnet-torchscript-train" && name.find("running_") != std::string::npos) continue;
    EXPECT_TRUE(got.at(name).second == tensor.second) << name << " has other values";
  }
}

INSTANTIATE_TEST_SUITE_P(BothExporters, StateDictTest,
                         testing::Values("gpt2-torchscript", "gpt2-dynamo", "llama-torchscript",
                                         "llama-dynamo", "bert-torchscript", "bert-dynamo", "vit-torchscript",
                                         "vit-dynamo", "lstm-torchscript", "lstm-dynamo",
                                         "nested-torchscript", "nested-dynamo", "resnet-torchscript-train",
                                         "resnet-dynamo-train", "bert-torchscript-static",
                                         "bert-dynamo-static", "bert-torchscript-fresh", "bert-dynamo-fresh",
                                         "gpt2-torchscript-sequence", "gpt2-dynamo-sequence",
                                         "llama-torchscript-sequence", "llama-dynamo-sequence"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Large models have their weights in a file beside them.
TEST(PyTorchParameters, WeightsInAFile) {
  for (const char* name : {"gpt2-dynamo", "lstm-torchscript"}) {
    absl::StatusOr<onnx::ModelProto> model = ReadModel(kFolder + name + ".onnx");
    ASSERT_TRUE(model.ok());
    const std::string folder = testing::TempDir() + "/" + name;
    std::filesystem::create_directories(folder);
    std::string bytes;
    for (auto& proto : *model->mutable_graph()->mutable_initializer()) {
      if (!proto.has_raw_data() || proto.dims_size() == 0 || proto.data_type() != onnx::TensorProto::FLOAT)
        continue;
      auto add = [&](const char* key, const std::string& value) {
        auto* entry = proto.add_external_data();
        entry->set_key(key);
        entry->set_value(value);
      };
      add("location", "weights.bin");
      add("offset", std::to_string(bytes.size()));
      add("length", std::to_string(proto.raw_data().size()));
      bytes += proto.raw_data();
      proto.clear_raw_data();
      proto.set_data_location(onnx::TensorProto::EXTERNAL);
    }
    std::ofstream(folder + "/weights.bin", std::ios::binary) << bytes;
    onnx::ModelProto planned = *model;
    const Tensors want = StateOf(Restore(name));
    ExternalDataResolver external(folder, false, false);
    absl::StatusOr<PyTorchParameters> parameters = RestorePyTorchParameters(*model, external);
    ASSERT_TRUE(parameters.ok()) << parameters.status();
    ParameterEditor editor(*model->mutable_graph(), external);
    for (const auto& [parameter, tensor] : want) {
      const bool tied = parameters->tied.contains(parameter);
      absl::StatusOr<std::string> contents =
          editor.Contents(tied ? parameters->tied.at(parameter) : parameter);
      ASSERT_TRUE(contents.ok()) << contents.status();
      EXPECT_TRUE(*contents == tensor.second) << parameter;
    }
    // Without the file a model can be planned, with the names that it has.
    std::filesystem::remove(folder + "/weights.bin");
    ExternalDataResolver missing(folder, false, /*allow_missing=*/true);
    EXPECT_TRUE(RestorePyTorchParameters(planned, missing).ok());
  }
}

TEST(PyTorchParameters, ModelsOfOthersAreLeftAlone) {
  absl::StatusOr<onnx::ModelProto> model = ReadModel(kFolder + "bert-torchscript.onnx");
  ASSERT_TRUE(model.ok());
  model->set_producer_name("another");
  const std::string before = model->SerializeAsString();
  ExternalDataResolver external(kFolder, false, false);
  ASSERT_TRUE(RestorePyTorchParameters(*model, external).ok());
  EXPECT_TRUE(model->SerializeAsString() == before);
}

TEST(PyTorchParameters, SharedWeightsHaveBothNames) {
  EXPECT_THAT(Restore("gpt2-torchscript").parameters.tied,
              ElementsAre(Pair("lm_head.weight", "transformer.wte.weight")));
  EXPECT_THAT(Restore("gpt2-dynamo").parameters.tied,
              ElementsAre(Pair("transformer.wte.weight", "lm_head.weight")));
  EXPECT_THAT(Restore("llama-dynamo").parameters.tied, IsEmpty());
}

TEST(PyTorchParameters, FoldedBatchNormalizationsAreReported) {
  EXPECT_THAT(Restore("resnet-torchscript").parameters.notes,
              ElementsAre(HasSubstr("TrainingMode.TRAINING")));
  const std::vector<std::string> notes = Restore("resnet-dynamo").parameters.notes;
  EXPECT_THAT(notes,
              ElementsAre(AllOf(HasSubstr("the values under resnet.embedder.embedder.convolution.weight"),
                                HasSubstr("resnet.embedder.embedder.normalization.bias"),
                                HasSubstr("optimize=False"))));
}

}  // namespace
}  // namespace pipec
