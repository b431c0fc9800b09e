#include "tests/cuda/plan_run.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/driver/run.h"
#include "runtime/plan/load.h"
#include "runtime/transport/local/local_transport.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

class Losses : public RunObserver {
 public:
  explicit Losses(std::vector<double>& values) : values_(values) {}
  void OnNote(absl::string_view) override {}
  void OnStep(const StepReport& report) override { values_.push_back(report.loss); }
  void OnEvaluation(const EvaluationReport&) override {}
  void OnProgress(absl::string_view, int64_t, int64_t) override {}

 private:
  std::vector<double>& values_;
};

}  // namespace

DevicesOf OnCpu() {
  return [](int) { return [](int) { return MakeCpuDevice(1); }; };
}

DevicesOf OnCuda(int gpus, bool graphs) {
  return [=](int ranks) {
    return [=, group = NewStepGraphs(ranks, graphs)](int rank) { return MakeCudaDevice(rank % gpus, group); };
  };
}

void CudaPlans::SetUp() {
  const char* bin = std::getenv("PIPEC_BIN");
  ASSERT_NE(bin, nullptr) << "PIPEC_BIN names the folder of the tools";
  bin_ = bin;
  folder_ = fs::path(testing::TempDir()) / absl::StrCat("pipec-cuda-", getpid());
  fs::create_directories(folder_);
}

void CudaPlans::TearDown() { fs::remove_all(folder_); }

void CudaPlans::Tool(const std::string& command) {
  ASSERT_EQ(std::system(absl::StrCat(bin_, "/", command, " >/dev/null 2>&1").c_str()), 0) << command;
}

void CudaPlans::MakeModel(const std::string& model) {
  Tool(absl::StrCat("make-model ", model, " -o ", (folder_ / "m.onnx").string()));
}

std::string CudaPlans::MakePlan(const std::string& flags) {
  const std::string plan = folder_ / "m.plan";
  Tool(absl::StrCat("pipec ", (folder_ / "m.onnx").string(), " -o ", plan, " ", flags));
  return plan;
}

Trained CudaPlans::Train(const std::string& plan, const DevicesOf& devices, const TrainOptions& train) {
  Trained trained;
  const absl::StatusOr<Manifest> manifest = LoadManifest(plan);
  if (!manifest.ok()) return {manifest.status()};
  LocalHub hub(manifest->ranks, {.rendezvous = train.rendezvous, .rendezvous_limit = train.timeout});
  RunOptions options;
  options.data = train.data;
  options.steps = train.steps;
  options.executor.timeout = train.timeout;
  options.export_directory = folder_ / "trained";
  fs::remove_all(options.export_directory);
  Losses losses(trained.losses);
  const MakeTransport local = [&](int rank, Device& device) { return hub.Connect(rank, device); };
  trained.status = RunPlan(plan, options, devices(manifest->ranks),
                           train.meeting ? train.meeting(manifest->ranks) : local, losses)
                       .status();
  if (!trained.status.ok()) return trained;
  const absl::StatusOr<SafetensorsFile> file =
      SafetensorsFile::Open(options.export_directory + "/model.safetensors");
  if (!file.ok()) return {file.status()};
  for (const SafetensorsFile::Entry& entry : file->entries())
    trained.parameters[entry.name] = std::string(file->Bytes(entry));
  return trained;
}

Trained CudaPlans::TrainEmulated(const std::string& plan, const DevicesOf& devices, uint64_t seed,
                                 const TrainOptions& options) {
  cuda_emulation::SetSeed(seed);
  const cuda_emulation::LiveObjects before = cuda_emulation::CountLiveObjects();
  Trained trained = Train(plan, devices, options);
  EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
  EXPECT_TRUE(cuda_emulation::CountLiveObjects() == before) << "something was not given back";
  return trained;
}

void ExpectNear(const Trained& got, const Trained& wanted) {
  ASSERT_TRUE(wanted.status.ok()) << wanted.status;
  ASSERT_TRUE(got.status.ok()) << got.status;
  EXPECT_THAT(got.losses, testing::Pointwise(testing::DoubleNear(1e-5), wanted.losses));
  for (const auto& [name, contents] : wanted.parameters) {
    const auto it = got.parameters.find(name);
    ASSERT_NE(it, got.parameters.end()) << name;
    ASSERT_EQ(it->second.size(), contents.size()) << name;
    for (size_t at = 0; at < contents.size(); at += sizeof(float)) {
      float a, b;
      std::memcpy(&a, it->second.data() + at, sizeof a);
      std::memcpy(&b, contents.data() + at, sizeof b);
      ASSERT_NEAR(a, b, 1e-5 * (1 + std::fabs(b))) << name << ", element " << at / sizeof(float);
    }
  }
}

void ExpectSame(const Trained& got, const Trained& wanted) {
  ASSERT_TRUE(wanted.status.ok()) << wanted.status;
  ASSERT_TRUE(got.status.ok()) << got.status;
  EXPECT_EQ(got.losses, wanted.losses);
  EXPECT_TRUE(got.parameters == wanted.parameters) << "parameters differ";
}

}  // namespace pipec
