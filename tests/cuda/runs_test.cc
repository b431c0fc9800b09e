// Steps that must not update, inference, messages that block, plans whose ranks do not agree: on emulated GPUs as
// on the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/data/data_source.h"
#include "runtime/data/npz.h"
#include "runtime/driver/batches.h"
#include "runtime/driver/session.h"
#include "runtime/plan/load.h"
#include "runtime/plan/manifest.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/transport/local/local_transport.h"
#include "tests/cuda/plan_run.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

using testing::HasSubstr;

class CudaRuns : public CudaPlans {
 protected:
  void SetUp() override {
    CudaPlans::SetUp();
    cuda_emulation::SetDevices(2);
    MakeModel("mlp --hidden=8 --inputs=6 --layers=4 --classes=4 --batch=4");
  }
};

// Random samples of 6 numbers in 4 classes, the batches of so many steps; in step `bad`, from 0, one number is
// none, or one label is `bad_label` instead.
void WriteData(const std::string& path, int64_t steps, int64_t batch, int64_t bad, int64_t bad_label = -1) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> draw;
  std::vector<float> x(steps * batch * 6);
  for (float& value : x) value = draw(random);
  std::vector<int64_t> labels(steps * batch);
  for (int64_t& label : labels) label = static_cast<int64_t>(random() % 4);
  const int64_t sample = bad * batch + batch / 2;
  if (bad_label < 0) {
    x[sample * 6] = std::numeric_limits<float>::quiet_NaN();
  } else {
    labels[sample] = bad_label;
  }
  const auto bytes = [](const auto& values) {
    return absl::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
  };
  const auto n = static_cast<int64_t>(labels.size());
  ASSERT_TRUE(WriteNpz(path, {{"x", {{DType::kFloat32, {n, 6}}, bytes(x), nullptr}},
                              {"labels", {{DType::kInt64, {n}}, bytes(labels), nullptr}}})
                  .ok());
}

// The next step has begun when nobody knows yet that this one is skipped: it begins again, with the scale and the
// count of updates that it would have had.
TEST_F(CudaRuns, AStepThatIsSkippedChangesNothingAndTheNextBeginsAgain) {
  const TrainOptions options{.steps = 9, .data = folder() / "data.npz", .lr = 0.01};
  for (const char* schedule : {"1f1b", "zb-h1", "pipedream-2bw"}) {
    for (int64_t bad : {1, 5}) {
      WriteData(options.data, options.steps, 16, bad);
      const std::string plan =
          MakePlan(absl::StrCat("--stages=2 --microbatches=4 --precision=fp16 --schedule=", schedule));
      const Trained wanted = Train(plan, OnCpu(), options);
      ASSERT_EQ(wanted.skipped, std::vector<int64_t>{bad + 1});
      for (uint64_t seed = 0; seed < 2; ++seed) {
        SCOPED_TRACE(absl::StrCat(schedule, ", step ", bad + 1, ", seed ", seed));
        const Trained got = TrainEmulated(plan, OnCuda(1, seed % 2 == 1), seed, options);
        EXPECT_EQ(got.skipped, wanted.skipped);
        ExpectNear(got, wanted, 2e-3);
      }
    }
  }
}

// The steps of a run that goes on behind a step whose loss is not finite, as float16 does.
class Steps : public StepSource {
 public:
  Steps(Session& session, int rank, const DataSource& data, int64_t steps)
      : session_(session), data_(data), steps_(steps) {
    for (Slot& slot : slots_) slot.feed = session.NewFeed(rank);
  }

  // Scalars of a step before which so many have updated nothing.
  static void Set(const Session& session, int64_t step, int64_t skipped, std::vector<ParameterScalars>& rates,
                  std::vector<StepScalars>& scalars) {
    rates.assign(session.trained_parameters().size(), {.lr = 0.01});
    scalars.assign(session.manifest().microbatches, {});
    for (size_t m = 0; m < scalars.size(); ++m) {
      scalars[m].step = step;
      scalars[m].updates = step - skipped;
      scalars[m].microbatch = static_cast<int64_t>(m);
      scalars[m].valid_samples = session.manifest().microbatch_size;
      scalars[m].parameters = rates.data();
    }
  }

  bool Admit(int64_t step) override { return step < steps_; }
  absl::Status Begin(int64_t step, absl::Span<const StepScalars>* scalars, StepData* data) override {
    Slot& slot = slots_[step % 2];
    std::vector<int64_t> samples(session_.manifest().batch());
    FillInOrder(data_.samples(), step, absl::MakeSpan(samples));
    RETURN_IF_ERROR(slot.feed->Fill(data_, samples));
    Set(session_, step, skipped, slot.rates, slot.scalars);
    *scalars = slot.scalars;
    *data = slot.feed->data();
    ++begun;
    return absl::OkStatus();
  }
  absl::Status End(int64_t, const StepResult& result) override {
    losses.push_back(result.loss.value_or(0));
    skipped += result.stopped;
    return absl::OkStatus();
  }

  int64_t begun = 0, skipped = 0;
  std::vector<double> losses;

 private:
  struct Slot {
    std::unique_ptr<Feed> feed;
    std::vector<ParameterScalars> rates;
    std::vector<StepScalars> scalars;
  };
  Session& session_;
  const DataSource& data_;
  const int64_t steps_;
  Slot slots_[2];
};

// A plan's session on a device, with its data.
struct Opened {
  std::unique_ptr<LocalHub> hub;
  std::unique_ptr<Session> session;
  std::unique_ptr<DataSource> data;

  Opened(const std::string& plan, const DevicesOf& devices, const std::string& data_path) {
    const Manifest manifest = LoadManifest(plan).value();
    hub = std::make_unique<LocalHub>(manifest.ranks);
    session = Session::Open(plan, manifest, devices(manifest.ranks),
                            [this](int rank, Device& device) { return hub->Connect(rank, device); }, {})
                  .value();
    data = OpenData(data_path, session->inputs(), {}).value();
  }
};

TEST_F(CudaRuns, AStepBehindOneThatUpdatedNothingBeginsAgain) {
  constexpr int64_t kSteps = 9;
  const std::string data = folder() / "data.npz";
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    const std::string plan =
        MakePlan(absl::StrCat("--stages=2 --microbatches=4 --optimizer=adam --schedule=", schedule));
    for (int64_t bad : {1, 4, 8}) {
      WriteData(data, kSteps, 16, bad);
      std::vector<double> wanted;
      Opened cpu(plan, OnCpu(), data);
      for (int64_t step = 0, skipped = 0; step < kSteps; ++step) {
        std::vector<ParameterScalars> rates;
        std::vector<StepScalars> scalars;
        Steps::Set(*cpu.session, step, skipped, rates, scalars);
        std::vector<int64_t> samples(16);
        FillInOrder(cpu.data->samples(), step, absl::MakeSpan(samples));
        const StepResult done = cpu.session->Run(StepKind::kTrain, *cpu.data, samples, scalars).value();
        skipped += done.stopped;
        wanted.push_back(cpu.session->ReadScalar(&plan::RankPlan::loss).value().value());
      }
      for (uint64_t seed = 0; seed < 2; ++seed) {
        SCOPED_TRACE(absl::StrCat(schedule, ", step ", bad, ", seed ", seed));
        cuda_emulation::SetSeed(seed);
        Opened cuda(plan, OnCuda(1, seed % 2 == 1), data);
        Steps first(*cuda.session, 0, *cuda.data, kSteps), second(*cuda.session, 1, *cuda.data, kSteps);
        StepSource* const sources[] = {&first, &second};
        ASSERT_TRUE(cuda.session->RunRounds(0, sources).ok());
        EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
        EXPECT_EQ(first.skipped, 1);
        EXPECT_EQ(first.begun, bad == kSteps - 1 ? kSteps : kSteps + 1) << "the next one did not begin again";
        EXPECT_THAT(first.losses, testing::Pointwise(testing::NanSensitiveDoubleNear(1e-5), wanted));
        EXPECT_THAT(second.losses, testing::Pointwise(testing::NanSensitiveDoubleNear(0), first.losses));
      }
    }
  }
}

// Updates so large that a later step's numbers overflow: the step that finds out updates nothing, nor does the one
// behind it that was enqueued already; else the search for the first such number would find parameters instead.
TEST_F(CudaRuns, ANumberThatIsNotFiniteEndsTheRunAsOnTheCpu) {
  for (const char* schedule : {"gpipe", "zb-v", "pipedream-2bw"}) {
    const std::string plan =
        MakePlan(absl::StrCat("--stages=2 --microbatches=4 --optimizer=sgd --schedule=", schedule));
    const TrainOptions options{.steps = 9, .lr = 1e13};
    const Trained wanted = Train(plan, OnCpu(), options);
    ASSERT_FALSE(wanted.status.ok());
    for (uint64_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(absl::StrCat(schedule, ", seed ", seed));
      const Trained got = TrainEmulated(plan, OnCuda(1, seed % 2 == 1), seed, options);
      EXPECT_EQ(got.status, wanted.status);
      EXPECT_EQ(got.losses.size(), wanted.losses.size());
    }
  }
}

// What a kernel finds in its operands ends the run a step later, named, on every rank.
TEST_F(CudaRuns, ALabelOutOfRangeEndsTheRun) {
  const std::string plan = MakePlan("--stages=2 --microbatches=4");
  const TrainOptions options{.steps = 9, .data = folder() / "data.npz"};
  WriteData(options.data, options.steps, 16, 4, /*bad_label=*/9);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const Trained run = TrainEmulated(plan, OnCuda(1, seed % 2 == 1), seed, options);
    EXPECT_EQ(run.status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(run.status.message()), testing::StartsWith("rank 1, step "));
    EXPECT_THAT(std::string(run.status.message()), HasSubstr("label 9 at flat position 0 is not in [0, 4)"));
  }
}

TEST_F(CudaRuns, InferenceGivesWhatItGivesOnTheCpu) {
  const std::string plan = MakePlan("--stages=4 --microbatches=8 --mode=infer");
  const Trained wanted = Train(plan, OnCpu());
  ASSERT_FALSE(wanted.parameters.empty());
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    ExpectNear(TrainEmulated(plan, OnCuda(1 + seed % 4 / 2, seed % 2 == 1), seed), wanted);
  }
}

// Between steps that are graphs stands an evaluation, which becomes one too; weights in two places come in other
// order behind it.
TEST_F(CudaRuns, EvaluationsStandBetweenSteps) {
  for (const char* schedule : {"1f1b", "zb-h2", "pipedream-2bw"}) {
    const std::string plan = MakePlan(absl::StrCat("--stages=2 --microbatches=4 --schedule=", schedule));
    const TrainOptions options{.steps = 7, .eval_every = 4};
    const Trained wanted = Train(plan, OnCpu(), options);
    ASSERT_EQ(wanted.evaluations.size(), 3u);
    for (uint64_t seed = 0; seed < 2; ++seed) {
      SCOPED_TRACE(absl::StrCat(schedule, ", seed ", seed));
      ExpectNear(TrainEmulated(plan, OnCuda(1, seed % 2 == 1), seed, options), wanted);
    }
  }
}

// What is traced, measured or looked at waits for the GPU, and changes no number.
TEST_F(CudaRuns, MeasuredRunsComputeTheSame) {
  for (const char* schedule : {"1f1b", "zb-h1", "pipedream-2bw"}) {
    const std::string plan = MakePlan(absl::StrCat("--stages=2 --microbatches=4 --schedule=", schedule));
    const Trained wanted = TrainEmulated(plan, OnCuda(1), 0, {.steps = 4});
    for (int what = 0; what < 3; ++what) {
      SCOPED_TRACE(absl::StrCat(schedule, ", ",
                                what == 0   ? "trace"
                                : what == 1 ? "profile"
                                            : "check-finite"));
      ExpectSame(
          TrainEmulated(plan, OnCuda(1), 1 + what,
                        {.steps = 4, .trace = what == 0, .profile = what == 1, .check_finite = what == 2}),
          wanted);
    }
  }
}

// B24: sends that return only once their receive is posted, and hold up all that the rank enqueues behind them.
TEST_F(CudaRuns, NoScheduleNeedsSendsThatBuffer) {
  MakeModel("mlp --hidden=8 --inputs=6 --layers=10 --classes=4 --batch=4");
  const std::vector<std::string> plans = {"--schedule=1f1b --stages=2",        "--schedule=1f1b --stages=3",
                                          "--schedule=1f1b --stages=4",        "--schedule=1f1b --stages=5",
                                          "--schedule=interleaved --stages=2", "--schedule=zb-v --stages=2"};
  uint64_t seed = 0;
  for (const std::string& flags : plans) {
    SCOPED_TRACE(flags);
    const std::string plan = MakePlan(absl::StrCat("--microbatches=4 ", flags));
    const Trained buffered = TrainEmulated(plan, OnCuda(1), ++seed);
    for (bool graphs : {false, true})
      ExpectSame(TrainEmulated(plan, OnCuda(1, graphs), ++seed, {.rendezvous = true}), buffered);
  }
}

plan::RankPlan ReadRank(const std::string& directory, const std::string& name) {
  plan::RankPlan rank_plan;
  std::ifstream file(absl::StrCat(directory, "/", name), std::ios::binary);
  EXPECT_TRUE(rank_plan.ParseFromIstream(&file));
  return rank_plan;
}

// In a rank's place, and the manifest so that it fits.
void WriteRank(const std::string& directory, const std::string& name, const plan::RankPlan& rank_plan) {
  const std::string path = absl::StrCat(directory, "/", name);
  {
    std::ofstream file(path, std::ios::binary);
    ASSERT_TRUE(rank_plan.SerializeToOstream(&file));
  }
  absl::StatusOr<Manifest> manifest = LoadManifest(directory);
  ASSERT_TRUE(manifest.ok());
  for (ManifestFile& file : manifest->files) {
    if (file.path == name) file = DescribeFile(path, name).value();
  }
  std::ofstream(directory + "/manifest.json") << ToJson(*manifest);
}

// The tensors of the first message of activations.
std::vector<int> Crossing(const plan::RankPlan& rank_plan) {
  for (const plan::Message& message : rank_plan.messages()) {
    if (message.kind() == plan::ACTIVATIONS) return {message.tensors().begin(), message.tensors().end()};
  }
  return {};
}

// B22: a cut through tensors of several types gives the loss of one rank, of which all ranks know the same; ranks
// that do not agree on the type or the shape of one of them are refused before anything runs.
TEST_F(CudaRuns, AMessageOfMixedTypes) {
  std::string weights = "float[6,8] w1 = {0.31";
  for (int i = 1; i < 48; ++i) absl::StrAppend(&weights, ", ", 0.01 * (i * 37 % 61) - 0.3);
  absl::StrAppend(&weights, "}, float[8,4] w2 = {0.1");
  for (int i = 1; i < 32; ++i) absl::StrAppend(&weights, ", ", 0.02 * (i * 17 % 31) - 0.3);
  absl::StrAppend(&weights, "}, float[5,8] table = {0.2");
  for (int i = 1; i < 40; ++i) absl::StrAppend(&weights, ", ", 0.02 * (i * 23 % 37) - 0.3);
  WriteModel(
      absl::StrCat("<ir_version: 10, opset_import: [\"\" : 21]>\n"
                   "mixed (float[2,6] x, int64[2] ids) => (float[2,4] y)\n<",
                   weights, "}, int64[1] three = {3}>\n", R"({
  h = MatMul(x, w1)
  row = Mod(ids, three)
  e = Gather(table, row)
  s = Exp(h)
  g = Add(s, e)
  f = Gather(table, row)
  b = Mul(g, f)
  c = Add(b, h)
  d = Add(c, s)
  y = MatMul(d, w2)
})"));
  const std::string flags = "--microbatches=4 --precision=fp16 --optimizer=sgd";
  const Trained alone = TrainEmulated(MakePlan(flags + " --stages=1"), OnCuda(1), 0);
  const std::string plan = MakePlan(flags + " --stages=2 --cut=g");
  const plan::RankPlan receiver = ReadRank(plan, "rank-001.plan");
  const std::vector<int> crossing = Crossing(receiver);
  std::set<int64_t> types;
  for (int tensor : crossing) types.insert(receiver.tensors(tensor).dtype());
  EXPECT_THAT(types, testing::ElementsAre(1, 7, 10)) << "float32, int64, float16";
  for (uint64_t seed = 0; seed < 4; ++seed)
    ExpectSame(TrainEmulated(plan, OnCuda(1 + seed / 2, seed % 2 == 1), seed), alone);
  for (int tensor : crossing) {
    for (const bool shape : {false, true}) {
      plan::RankPlan edited = receiver;
      plan::Tensor& own = *edited.mutable_tensors(tensor);
      if (shape) own.set_shape(0, own.shape(0) - 1);
      if (!shape) own.set_dtype(own.dtype() == 10 ? 16 : 10);  // bfloat16, float16
      WriteRank(plan, "rank-001.plan", edited);
      cuda_emulation::SetSeed(0);
      const Trained refused = Train(plan, OnCuda(1));
      EXPECT_EQ(refused.status.code(), absl::StatusCode::kInvalidArgument) << refused.status;
      EXPECT_EQ(cuda_emulation::CallCount(), 0);
    }
  }
}

// The limit of a plan counts what lies beside its arena: workspace, and the scalars and inputs of two steps.
TEST_F(CudaRuns, MoreMemoryThanThePlanIsForIsRefused) {
  const std::string plan = MakePlan("--stages=1 --microbatches=4"), data = folder() / "data.npz";
  WriteData(data, 1, 16, 0, 0);
  plan::RankPlan rank_plan = ReadRank(plan, "rank-000.plan");
  cuda_emulation::SetSeed(0);
  const int64_t needed =
      rank_plan.arena_bytes() + Opened(plan, OnCuda(1), data).session->executor(0).workspace_bytes();
  for (const int64_t short_of : {0, 1}) {
    rank_plan.set_memory_limit(needed - short_of);
    WriteRank(plan, "rank-000.plan", rank_plan);
    const Trained run = Train(plan, OnCuda(1), {.steps = 1, .data = data});
    EXPECT_EQ(run.status.code(), short_of ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kOk)
        << run.status;
  }
}

}  // namespace
}  // namespace pipec
