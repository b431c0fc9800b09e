// Models for tests: ONNX text in, a file or a module out.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "compiler/ir/verify.h"
#include "compiler/onnx/import.h"

namespace pipec {

// A folder of its own for every test.
inline std::filesystem::path TestFolder() {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const auto folder = std::filesystem::path(testing::TempDir()) / "pipec" /
                      (std::string(info->test_suite_name()) + "." + info->name());
  std::filesystem::create_directories(folder);
  return folder;
}

inline std::string WriteFile(const std::string& name, const std::string& contents) {
  const auto path = TestFolder() / name;
  std::ofstream(path, std::ios::binary) << contents;
  return path.string();
}

// The header that most text models share.
inline std::string Text(const std::string& graph, int opset = 21) {
  return "<ir_version: 10, opset_import: [\"\" : " + std::to_string(opset) + ", \"ai.pipec\" : 1]>\n" + graph;
}

inline absl::StatusOr<std::unique_ptr<Module>> TryImport(const std::string& text,
                                                         ImportOptions options = {}) {
  return ImportModel(WriteFile("model.onnxtxt", text), options);
}

// An imported module that its verifier accepts.
inline std::unique_ptr<Module> Import(const std::string& text, ImportOptions options = {}) {
  auto module = TryImport(text, std::move(options));
  if (!module.ok()) {
    ADD_FAILURE() << module.status();
    return std::make_unique<Module>();
  }
  EXPECT_EQ(VerifyModel(**module), absl::OkStatus());
  return *std::move(module);
}

}  // namespace pipec
