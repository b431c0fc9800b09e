// ONNX's own whole models of opset 9, and what PyTorch exported in opset 6: imported with every dimension
// bound, in the types that they declare.
#include <gtest/gtest.h>

#include "compiler/onnx/read/read_model.h"
#include "passes/evaluate.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

// Fails unless the model imports and its one output has the declared type.
void ImportAsDeclared(const std::string& path) {
  SCOPED_TRACE(path);
  auto module = ImportModel(path, {.evaluate = Evaluate});
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(VerifyModel(**module), absl::OkStatus());
  EXPECT_GT((*module)->graph.num_nodes(), 0);
  auto model = ReadModel(path);
  ASSERT_TRUE(model.ok());
  ASSERT_EQ(model->graph().output_size(), (*module)->graph.outputs.size());
  for (int k = 0; k < model->graph().output_size(); ++k) {
    const TensorType& type = (*module)->graph.outputs[k]->type;
    const auto& tensor = model->graph().output(k).type().tensor_type();
    EXPECT_EQ(static_cast<int>(type.dtype), tensor.elem_type());
    Shape declared;
    for (const auto& dim : tensor.shape().dim()) declared.push_back(dim.dim_value());
    EXPECT_EQ(type.shape, declared);
  }
}

TEST(OldModels, ImageClassifiersOfOpset9) {
  int models = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(PIPEC_ONNX_DATA) / "light")) {
    if (entry.path().extension() != ".onnx") continue;
    ++models;
    ImportAsDeclared(entry.path().string());
  }
  EXPECT_EQ(models, 9);
}

TEST(OldModels, ExportsOfOpset6) {
  int models = 0;
  for (const char* suite : {"pytorch-converted", "pytorch-operator"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(PIPEC_ONNX_DATA) / suite)) {
      ++models;
      ImportAsDeclared((entry.path() / "model.onnx").string());
    }
  }
  EXPECT_EQ(models, 82 + 35);
}

}  // namespace
}  // namespace pipec
