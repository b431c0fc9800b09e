#include "tests/cuda/plan_run.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/data/npz.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/driver/run.h"
#include "runtime/plan/load.h"
#include "runtime/transport/local/local_transport.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

class Figures : public RunObserver {
 public:
  explicit Figures(Trained& trained) : trained_(trained) {}
  void OnNote(absl::string_view) override {}
  void OnStep(const StepReport& report) override {
    trained_.losses.push_back(report.loss.value());
    if (report.skipped) trained_.skipped.push_back(report.step);
  }
  void OnEvaluation(const EvaluationReport& report) override { trained_.evaluations.push_back(report.loss.value()); }
  void OnProgress(absl::string_view, int64_t, int64_t) override {}

 private:
  Trained& trained_;
};

absl::Status ReadParameters(const std::string& path, Trained& trained) {
  ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  for (const SafetensorsFile::Entry& entry : file.entries())
    trained.parameters[entry.name] = std::string(file.Bytes(entry));
  return absl::OkStatus();
}

absl::Status ReadOutputs(const std::string& path, Trained& trained) {
  ASSIGN_OR_RETURN(const NamedArrays arrays, ReadNpz(path, {}));
  for (const auto& [name, array] : arrays) trained.parameters[name] = std::string(array.bytes);
  return absl::OkStatus();
}

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
  model_ = folder_ / "m.onnx";
  Tool(absl::StrCat("make-model ", model, " -o ", model_.string()));
}

void CudaPlans::WriteModel(const std::string& text) {
  model_ = folder_ / "m.onnxtxt";
  std::ofstream(model_) << text;
}

std::string CudaPlans::MakePlan(const std::string& flags) {
  const std::string plan = folder_ / "m.plan";
  Tool(absl::StrCat("pipec ", model_.string(), " -o ", plan, " ", flags));
  return plan;
}

Trained CudaPlans::Train(const std::string& plan, const DevicesOf& devices, const TrainOptions& train) {
  Trained trained;
  const absl::StatusOr<Manifest> manifest = LoadManifest(plan);
  if (!manifest.ok()) return {manifest.status()};
  const int ranks = manifest->ranks * manifest->replicas;
  LocalHub hub(
      ranks,
      {.replicas = manifest->replicas, .rendezvous = train.rendezvous, .rendezvous_limit = train.timeout});
  RunOptions options;
  options.data = train.data;
  options.steps = train.steps;
  options.executor.timeout = train.timeout;
  options.executor.check_finite = train.check_finite;
  if (train.trace) options.trace = folder_ / "trace.json";
  if (train.profile) options.profile = folder_ / "profile.json";
  if (train.eval_every > 0) options.eval_data = "synthetic";
  options.eval_every = train.eval_every;
  const bool trains = manifest->mode == "train";
  const std::string result = folder_ / (trains ? "trained" : "outputs.npz");
  (trains ? options.export_directory : options.outputs) = result;
  if (trains) options.hyperparameters.lr.value = train.lr;
  options.hyperparameters.clip_norm = train.clip_norm;
  fs::remove_all(result);
  Figures figures(trained);
  const MakeTransport local = [&](int rank, Device& device) { return hub.Connect(rank, device); };
  trained.status = RunPlan(plan, options, devices(ranks),
                           train.meeting ? train.meeting(ranks, manifest->replicas) : local, figures)
                       .status();
  if (trained.status.ok())
    trained.status =
        trains ? ReadParameters(result + "/model.safetensors", trained) : ReadOutputs(result, trained);
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

void ExpectNear(const Trained& got, const Trained& wanted, double tolerance) {
  ASSERT_TRUE(wanted.status.ok()) << wanted.status;
  ASSERT_TRUE(got.status.ok()) << got.status;
  EXPECT_THAT(got.losses, testing::Pointwise(testing::NanSensitiveDoubleNear(tolerance), wanted.losses));
  EXPECT_THAT(got.evaluations, testing::Pointwise(testing::DoubleNear(tolerance), wanted.evaluations));
  for (const auto& [name, contents] : wanted.parameters) {
    const auto it = got.parameters.find(name);
    ASSERT_NE(it, got.parameters.end()) << name;
    ASSERT_EQ(it->second.size(), contents.size()) << name;
    for (size_t at = 0; at < contents.size(); at += sizeof(float)) {
      float a, b;
      std::memcpy(&a, it->second.data() + at, sizeof a);
      std::memcpy(&b, contents.data() + at, sizeof b);
      ASSERT_NEAR(a, b, tolerance * (1 + std::fabs(b))) << name << ", element " << at / sizeof(float);
    }
  }
}

void ExpectSame(const Trained& got, const Trained& wanted) {
  ASSERT_TRUE(wanted.status.ok()) << wanted.status;
  ASSERT_TRUE(got.status.ok()) << got.status;
  EXPECT_EQ(got.losses, wanted.losses);
  EXPECT_EQ(got.evaluations, wanted.evaluations);
  EXPECT_TRUE(got.parameters == wanted.parameters) << "parameters differ";
}

}  // namespace pipec
