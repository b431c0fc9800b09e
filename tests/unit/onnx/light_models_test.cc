// ONNX's own whole models, written in opset 9: imported with every dimension bound, in types that they declare.
#include <gtest/gtest.h>

#include "compiler/onnx/read_model.h"
#include "passes/evaluate.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

TEST(LightModels, Import) {
  int models = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(PIPEC_ONNX_DATA) / "light")) {
    if (entry.path().extension() != ".onnx") continue;
    const std::string path = entry.path().string();
    SCOPED_TRACE(path);
    ++models;
    auto module = ImportModel(path, {.evaluate = Evaluate});
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_EQ(VerifyModel(**module), absl::OkStatus());
    EXPECT_GT((*module)->graph.num_nodes(), 10);
    auto model = ReadModel(path);
    ASSERT_TRUE(model.ok());
    ASSERT_EQ(model->graph().output_size(), 1);
    const TensorType& type = (*module)->graph.outputs[0]->type;
    EXPECT_EQ(type.dtype, DType::kFloat32);
    Shape declared;
    for (const auto& dim : model->graph().output(0).type().tensor_type().shape().dim()) {
      declared.push_back(dim.dim_value());
    }
    EXPECT_EQ(type.shape, declared);
  }
  EXPECT_EQ(models, 9);
}

}  // namespace
}  // namespace pipec
