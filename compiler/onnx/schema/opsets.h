// What the onnx library knows of each operator's history.
#pragma once

#include <string>
#include <vector>

namespace pipec {

struct OpHistory {
  std::string op;
  std::string domain;       // "" for ai.onnx
  std::vector<int> opsets;  // the versions in which its definition changed, ascending
};

// Every operator of domain "" (ai.onnx), by name; deprecated ones too, which normalisation replaces.
std::vector<OpHistory> OpHistories();

}  // namespace pipec
