// Plans of a small mlp, and what training with them gives on the CPU and on emulated GPUs.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/device/device.h"
#include "runtime/driver/session.h"

namespace pipec {

// Which device each of so many ranks gets.
using DevicesOf = std::function<std::function<std::unique_ptr<Device>(int rank)>(int ranks)>;

DevicesOf OnCpu();
// Ranks on GPUs 0 ... gpus-1 in turn, steps as graphs or not.
DevicesOf OnCuda(int gpus, bool graphs = true);

struct Trained {
  absl::Status status;
  std::vector<double> losses;
  std::vector<int64_t> skipped;     // steps that updated nothing
  std::vector<double> evaluations;  // losses
  std::map<std::string, std::string>
      parameters;  // by name, contents; of an inference plan the outputs; none after a failure
};

// How the ranks of a run are connected, and what must live as long as they are.
using MeetingOf = std::function<MakeTransport(int ranks, int replicas)>;  // ranks of all replicas

struct TrainOptions {
  int64_t steps = 6;
  std::string data = "synthetic";
  double lr = 0.1, clip_norm = 0;
  absl::Duration timeout = absl::Seconds(60);
  bool rendezvous = false;  // a send blocks until its receive is posted
  MeetingOf meeting;        // null: the local transport
  int64_t eval_every = 0;   // 0: no evaluation
  bool trace = false, profile = false, check_finite = false;
};

class CudaPlans : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // What make-model makes of a kind and its flags.
  void MakeModel(const std::string& model);
  // A model in ONNX's text syntax.
  void WriteModel(const std::string& text);
  // The model's plan with these flags of pipec: its path.
  std::string MakePlan(const std::string& flags);
  Trained Train(const std::string& plan, const DevicesOf& devices, const TrainOptions& options = {});
  // The same over the emulation with a seed; it must find nothing wrong, and everything must be given back.
  Trained TrainEmulated(const std::string& plan, const DevicesOf& devices, uint64_t seed,
                        const TrainOptions& options = {});

  std::filesystem::path folder() const { return folder_; }

 private:
  void Tool(const std::string& command);

  std::string bin_;
  std::filesystem::path folder_, model_;
};

// Losses and parameters that differ by no more than sums in another order make: a few units of float32's last
// place, grown over a few steps. Of float16 the tolerance is wider.
void ExpectNear(const Trained& got, const Trained& wanted, double tolerance = 1e-5);
// Bit for bit.
void ExpectSame(const Trained& got, const Trained& wanted);

}  // namespace pipec
