// A module's results on the CPU device, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/module.h"
#include "passes/evaluate.h"

namespace pipec {

// Output `output` (float32), for inputs that count 1/4, 2/4, 3/4, ...
inline std::vector<float> RunModule(const Module& module, int output = 0) {
  if (output >= module.graph.outputs.size()) {
    ADD_FAILURE() << "there is no output " << output;
    return {};
  }
  absl::flat_hash_map<const Value*, std::string> contents;
  for (const Value* value : module.graph.Values()) {
    if (value->producer()) continue;
    if (value->kind() != ValueKind::kInput) {
      contents[value] = *ReadData(*value);
      continue;
    }
    std::string bytes(value->type.bytes(), '\0');
    for (int64_t i = 0; i < value->type.elements(); ++i) {
      const float v = static_cast<float>(i + 1) / 4;
      std::memcpy(bytes.data() + i * sizeof(float), &v, sizeof(float));
    }
    contents[value] = bytes;
  }
  for (const Node* node = module.graph.first_node(); node; node = node->next()) {
    std::vector<const std::string*> inputs;
    for (const Value* input : node->inputs()) inputs.push_back(input ? &contents.at(input) : nullptr);
    auto results = Evaluate(*node, inputs);
    EXPECT_TRUE(results.ok()) << node->op() << " " << results.status();
    if (!results.ok()) return {};
    for (int k = 0; k < results->size(); ++k) {
      if (node->output(k)) contents[node->output(k)] = (*results)[k];
    }
  }
  const std::string& bytes = contents.at(module.graph.outputs[output]);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace pipec
