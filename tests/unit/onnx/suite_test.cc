// ONNX's own single-node models: imported, the results have the types that the models declare, or the refusal
// is clean.
#include <gmock/gmock.h>

#include "compiler/onnx/read/read_model.h"
#include "compiler/onnx/schema/infer.h"
#include "passes/evaluate.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

fs::path SuiteFolder() { return fs::path(PIPEC_ONNX_DATA) / "node"; }

TEST(Suite, DeclaredTypesAreInferred) {
  int imported = 0, refused = 0;
  for (const auto& entry : fs::directory_iterator(SuiteFolder())) {
    const std::string path = (entry.path() / "model.onnx").string();
    if (!fs::exists(path)) continue;
    auto module = ImportModel(path, {.evaluate = Evaluate});
    if (!module.ok()) {
      ++refused;
      EXPECT_NE(module.status().code(), absl::StatusCode::kInternal) << path << module.status();
      continue;
    }
    ++imported;
    EXPECT_EQ(VerifyModel(**module), absl::OkStatus()) << path;
    auto model = ReadModel(path);
    ASSERT_TRUE(model.ok());
    const auto& outputs = model->graph().output();
    // A sequence has become several outputs.
    if (!std::all_of(outputs.begin(), outputs.end(),
                     [](const auto& output) { return output.type().has_tensor_type(); })) {
      continue;
    }
    for (int k = 0; k < model->graph().output_size(); ++k) {
      const auto& declared = model->graph().output(k).type().tensor_type();
      const TensorType& type = (*module)->graph.outputs[k]->type;
      EXPECT_EQ(declared.elem_type(), static_cast<int>(type.dtype)) << path;
      if (!declared.has_shape()) continue;
      ASSERT_EQ(declared.shape().dim_size(), type.shape.size()) << path;
      for (int i = 0; i < type.shape.size(); ++i) {
        if (declared.shape().dim(i).has_dim_value()) {
          EXPECT_EQ(declared.shape().dim(i).dim_value(), type.shape[i]) << path;
        }
      }
    }
  }
  printf("%d imported, %d refused\n", imported, refused);
  EXPECT_GT(imported, 1200);
}

}  // namespace
}  // namespace pipec
