// The plan of the only rank, in protobuf's text format -> a refusal, or a training step and an evaluation step on
// the CPU. What a verifier lets through and a kernel does not refuse must not touch a byte outside of its buffers.
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "runtime/device/cpu/cpu_device.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/verify.h"
#include "runtime/transport/local/local_transport.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"

namespace pipec {
namespace {

constexpr char kParameters[] = "parameters.bin";

// What every plan's parameters are read from.
struct Parameters : MemoryFile {
  Parameters() : MemoryFile(kParameters) {
    const std::vector<uint8_t> bytes(1 << 16, 0x3c);
    Write(bytes.data(), bytes.size());
  }
};

class Silent : public google::protobuf::io::ErrorCollector {
  void AddError(int, int, const std::string&) override {}
};

// What would take long or much memory without being wrong, and what a step of its own cannot run.
bool IsSmall(const plan::RankPlan& rank_plan) {
  int64_t instructions = 0;
  for (const plan::Program& program : rank_plan.programs()) instructions += program.instructions_size();
  return rank_plan.ranks() == 1 && !rank_plan.asynchronous() && rank_plan.arena_bytes() <= 1 << 20 &&
         instructions * rank_plan.microbatches() <= 1000;
}

void RunStep(const plan::RankPlan& rank_plan, const std::string& directory) {
  const std::unique_ptr<Device> device = MakeCpuDevice(1);
  LocalHub hub(1);
  const std::unique_ptr<Transport> transport = hub.Connect(0, *device);
  const auto executor = Executor::Create(rank_plan, directory, *device, *transport, {.timeout = absl::Seconds(1)});
  if (!executor.ok()) return;
  std::vector<std::vector<std::byte>> memory;
  std::vector<const std::byte*> inputs;
  for (const plan::Port& port : rank_plan.inputs()) {
    memory.emplace_back(rank_plan.buffers(rank_plan.tensors(port.tensor()).buffer()).bytes());
    inputs.insert(inputs.end(), rank_plan.microbatches(), memory.back().data());
  }
  const std::vector<ParameterScalars> rates(256, ParameterScalars{0.05, 0});
  std::vector<StepScalars> scalars(rank_plan.microbatches());
  for (size_t m = 0; m < scalars.size(); ++m) {
    scalars[m].microbatch = static_cast<int64_t>(m);
    scalars[m].valid_samples = rank_plan.microbatch_size();
    scalars[m].parameters = rates.data();
  }
  if (rank_plan.training() && !(*executor)->Run(StepKind::kTrain, scalars, {inputs, {}}).ok()) return;
  for (StepScalars& s : scalars) s.training = false;
  (void)(*executor)->Run(StepKind::kEval, scalars, {inputs, {}});
}

void ReadAll(const std::string& text) {
  static const Parameters parameters;
  plan::RankPlan rank_plan;
  Silent silent;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silent);
  if (!parser.ParseFromString(text, &rank_plan) || !VerifyRankPlan(rank_plan).ok()) return;
  for (plan::Parameter& parameter : *rank_plan.mutable_parameters()) parameter.set_file(kParameters);
  const plan::RankPlan* alone[] = {&rank_plan};
  if (!VerifyPlan(alone).ok() || !VerifyParameterFiles(rank_plan, parameters.folder()).ok()) return;
  if (IsSmall(rank_plan)) RunStep(rank_plan, parameters.folder());
}

}  // namespace
}  // namespace pipec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  pipec::ReadAll({reinterpret_cast<const char*>(data), size});
  return 0;
}
