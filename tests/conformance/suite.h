// A suite of ONNX's backend tests on disk: models with inputs and the outputs they must give.
//
// Layouts: NAME/model.onnx with NAME/test_data_set_0/{input,output}_k.pb; and that of the whole models
// without weights, light_NAME.onnx with light_NAME_output_0.pb, whose input is arange(n) / n in float32.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/read/tensor_data.h"
#include "onnx/onnx_pb.h"

namespace pipec {

struct SuiteTest {
  std::string name;
  std::string model;  // path
  std::string data;   // folder of the data set; "": the layout of whole models
};

// By name. NotFound if the folder holds no test.
absl::StatusOr<std::vector<SuiteTest>> FindTests(const std::string& folder);

// The names of the model's inputs (initializers left out) and outputs with their tensors, in the model's
// order.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};
// The tensors of a sequence NAME are called NAME.0, NAME.1, ..., as pipec calls them.
struct SuiteData {
  std::vector<NamedTensor> inputs, outputs;
  std::map<std::string, int64_t>
      dims;  // what inputs that are sequences and optionals are: NAME:length, NAME:present
};

// Unimplemented, saying which, if an input or output is of a type that the compiler does not know.
absl::StatusOr<SuiteData> ReadData(const SuiteTest& test, const onnx::ModelProto& model);

}  // namespace pipec
