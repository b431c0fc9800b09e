#include "tests/conformance/run_model.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/emit/emit.h"
#include "compiler/onnx/import.h"
#include "passes/evaluate.h"
#include "passes/pass_manager.h"
#include "runtime/base/status.h"
#include "runtime/data/npy.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/driver/evaluate.h"
#include "runtime/plan/load.h"
#include "runtime/transport/local/local_transport.h"
#if PIPEC_CUDA
#include "runtime/device/cuda/cuda_device.h"
#endif

namespace pipec {
namespace {

std::unique_ptr<Device> MakeDeviceOf([[maybe_unused]] const RunModelOptions& options) {
#if PIPEC_CUDA
  if (options.on_cuda) return MakeCudaDevice(0);
#endif
  return MakeCpuDevice(1);
}

absl::StatusOr<Cluster> ClusterOf(const RunModelOptions& options, int stages) {
  return MakeCluster(options.on_cuda ? "h200" : "cpu", stages, 0);
}

// How much is known before the run.
enum class Binding { kNothing, kIntegers, kAllButLargest, kAll };

bool IsBound(const NamedTensor& input, const std::vector<NamedTensor>& inputs, Binding binding) {
  switch (binding) {
    case Binding::kNothing:
      return false;
    case Binding::kIntegers:
      return !IsFloat(input.tensor.type.dtype);
    case Binding::kAllButLargest:
      return &input != &*std::max_element(inputs.begin(), inputs.end(), [](const auto& a, const auto& b) {
        return a.tensor.type.bytes() < b.tensor.type.bytes();
      });
    case Binding::kAll:
      return true;
  }
  return false;
}

absl::Status WriteNpy(const std::string& path, const Tensor& tensor) {
  ASSIGN_OR_RETURN(const std::string header, NpyHeader(tensor.type));
  std::ofstream file(path, std::ios::binary);
  file << header << *tensor.data.bytes;
  return file.good() ? absl::OkStatus() : absl::UnknownError(absl::StrCat("cannot write ", path));
}

const Tensor* Find(const std::vector<NamedTensor>& inputs, const std::string& name) {
  auto it = std::find_if(inputs.begin(), inputs.end(), [&](const auto& input) { return input.name == name; });
  return it == inputs.end() ? nullptr : &it->tensor;
}

// The type of the tensors that an input is or consists of.
onnx::TypeProto::Tensor& TensorTypeOf(onnx::TypeProto& type) {
  if (type.has_optional_type()) return TensorTypeOf(*type.mutable_optional_type()->mutable_elem_type());
  if (type.has_sequence_type()) return TensorTypeOf(*type.mutable_sequence_type()->mutable_elem_type());
  return *type.mutable_tensor_type();
}

// Declares what --dim cannot say: the number of axes, and sizes of 0. Whether that changed anything.
bool DeclareShapes(const std::vector<NamedTensor>& inputs, onnx::ModelProto& model) {
  bool changed = false;
  for (auto& info : *model.mutable_graph()->mutable_input()) {
    const Tensor* whole = Find(inputs, info.name());
    const Tensor* tensor = whole ? whole : Find(inputs, absl::StrCat(info.name(), ".0"));
    if (!tensor) continue;
    onnx::TypeProto::Tensor& type = TensorTypeOf(*info.mutable_type());
    const Shape& shape = tensor->type.shape;
    if (!type.has_shape()) {
      changed = true;
      type.mutable_shape();
      for (size_t axis = 0; axis < shape.size(); ++axis) type.mutable_shape()->add_dim();
    }
    for (int axis = 0; axis < type.shape().dim_size() && axis < static_cast<int>(shape.size()); ++axis) {
      auto& dim = *type.mutable_shape()->mutable_dim(axis);
      if (dim.has_dim_value() || shape[axis] != 0) continue;
      changed = true;
      dim.set_dim_value(0);
    }
  }
  return changed;
}

// Every symbolic dimension of an input is what the data say.
std::map<std::string, int64_t> Dimensions(onnx::ModelProto& model, const SuiteData& data) {
  std::map<std::string, int64_t> dims = data.dims;
  for (auto& info : *model.mutable_graph()->mutable_input()) {
    const auto& shape = TensorTypeOf(*info.mutable_type()).shape();
    for (const auto& [name, tensor] : data.inputs) {
      const bool element = absl::StartsWith(name, absl::StrCat(info.name(), "."));
      if (name != info.name() && !element) continue;
      for (int axis = 0; axis < shape.dim_size() && axis < tensor.type.shape.size(); ++axis) {
        if (shape.dim(axis).has_dim_value()) continue;
        const std::string& symbol = shape.dim(axis).dim_param();
        const bool own = element || symbol.empty();
        dims[own ? absl::StrCat(name, ":", axis) : symbol] = tensor.type.shape[axis];
      }
    }
  }
  return dims;
}

absl::StatusOr<std::unique_ptr<Module>> Compile(const std::string& path,
                                                const std::map<std::string, int64_t>& dims,
                                                const std::vector<NamedTensor>& inputs, Binding binding,
                                                int stages, const RunModelOptions& options) {
  ImportOptions importing{.dims = dims, .infers = true};
  importing.evaluate = [](const Node& node, absl::Span<const std::string* const> operands) {
    return Evaluate(node, operands);
  };
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!IsBound(inputs[k], inputs, binding)) continue;
    const std::string file = absl::StrCat(options.folder, "/bound_", k, ".npy");
    RETURN_IF_ERROR(WriteNpy(file, inputs[k].tensor));
    importing.bound_inputs[inputs[k].name] = file;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Module> module, ImportModel(path, importing));
  module->mode = Mode::kInfer;
  PassContext context;
  context.options.mode = Mode::kInfer;
  context.options.schedule = "infer";
  context.options.ranks = stages;
  context.options.microbatches = 1;
  ASSIGN_OR_RETURN(context.options.cluster, ClusterOf(options, stages));
  RETURN_IF_ERROR(RunPipeline(*module, context));
  return module;
}

// The suite's inputs as the driver asks for them.
class SuiteInputs : public DataSource {
 public:
  SuiteInputs(const std::vector<DataInput>& wanted, const std::vector<NamedTensor>& inputs)
      : wanted_(wanted) {
    for (const DataInput& input : wanted) {
      tensors_.push_back(Find(inputs, input.name));
      if (input.batch_axis >= 0) samples_ = tensors_.back()->type.shape[input.batch_axis];
    }
  }
  int64_t samples() const override { return samples_; }
  absl::Status Read(int input, absl::Span<const int64_t> samples, std::byte* to) const override {
    const Tensor& tensor = *tensors_[input];
    GatherSamples(tensor.data.bytes->data(), tensor.type.dtype, samples_, wanted_[input].type,
                  wanted_[input].batch_axis, samples, to);
    return absl::OkStatus();
  }

 private:
  std::vector<DataInput> wanted_;
  std::vector<const Tensor*> tensors_;
  int64_t samples_ = 1;
};

class Silent : public RunObserver {
 public:
  void OnNote(absl::string_view) override {}
  void OnStep(const StepReport&) override {}
  void OnEvaluation(const EvaluationReport&) override {}
  void OnProgress(absl::string_view, int64_t, int64_t) override {}
};

absl::StatusOr<NamedArrays> RunPlanOnce(const std::string& directory, const std::vector<NamedTensor>& inputs,
                                        const RunModelOptions& options) {
  ASSIGN_OR_RETURN(const Manifest manifest, LoadManifest(directory));
  LocalHub hub(manifest.ranks);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Session> session,
      Session::Open(
          directory, manifest, [&](int) { return MakeDeviceOf(options); },
          [&](int rank, Device& device) { return hub.Connect(rank, device); }, ExecutorOptions()));
  const SuiteInputs data(session->inputs(), inputs);
  Silent observer;
  RunResult result;
  NamedArrays outputs;
  RETURN_IF_ERROR(Infer(*session, data, RunOptions(), /*trace=*/nullptr, observer, &result, &outputs));
  return outputs;
}

absl::StatusOr<NamedArrays> Run(const Module& module, int stages, const std::vector<NamedTensor>& inputs,
                                const RunModelOptions& options) {
  ASSIGN_OR_RETURN(const ParameterPlacement placement, PlaceParameters(module));
  const std::string plan = options.folder + "/plan";
  std::filesystem::remove_all(plan);
  ASSIGN_OR_RETURN(const Cluster cluster, ClusterOf(options, stages));
  RETURN_IF_ERROR(EmitPlan(module, placement, {.directory = plan, .cluster = &cluster}));
  return RunPlanOnce(plan, inputs, options);
}

}  // namespace

absl::StatusOr<ModelRuns> RunModel(const std::string& path, const onnx::ModelProto& model,
                                   const SuiteData& data, const RunModelOptions& options) {
  onnx::ModelProto declared = model;
  std::string file = path;
  if (DeclareShapes(data.inputs, declared)) {
    file = options.folder + "/declared.onnx";
    std::ofstream out(file, std::ios::binary);
    if (!declared.SerializeToOstream(&out)) return absl::UnknownError(absl::StrCat("cannot write ", file));
  }
  const std::map<std::string, int64_t> dims = Dimensions(declared, data);
  ModelRuns runs;
  absl::Status status;
  bool needs_more = false;  // CUDA's kernels do
  Binding binding = Binding::kNothing;
  for (Binding more : {Binding::kNothing, Binding::kIntegers, Binding::kAllButLargest, Binding::kAll}) {
    // Of what is known whole folding would leave nothing to run.
    if (needs_more && std::all_of(data.inputs.begin(), data.inputs.end(), [&](const NamedTensor& input) {
          return IsBound(input, data.inputs, more);
        }))
      continue;
    binding = more;
    const auto whole = Compile(file, dims, data.inputs, binding, 1, options);
    status = whole.status();
    if (status.ok()) {
      absl::StatusOr<NamedArrays> outputs = Run(**whole, 1, data.inputs, options);
      status = outputs.status();
      if (status.ok()) runs.whole = *std::move(outputs);
      needs_more = options.on_cuda && absl::IsUnimplemented(status);
      if (!needs_more) break;
    }
    if (data.inputs.empty()) break;
  }
  RETURN_IF_ERROR(status);
  if (options.stages == 1) return runs;
  const auto cut = Compile(file, dims, data.inputs, binding, options.stages, options);
  if (absl::IsOutOfRange(cut.status())) return runs;
  RETURN_IF_ERROR(cut.status());
  ASSIGN_OR_RETURN(runs.cut, Run(**cut, options.stages, data.inputs, options));
  return runs;
}

}  // namespace pipec
