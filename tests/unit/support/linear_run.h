// Runs the hand-built linear plan on the CPU, a thread a rank; and computes the same in float64 without any
// of it.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/cpu/cpu_device.h"
#include "runtime/executor/executor.h"
#include "runtime/transport/local/local_transport.h"
#include "tests/unit/support/linear_plan.h"

namespace pipec::testing {

inline constexpr double kRate = 0.05;

// Element i of a rank's port, microbatch m, step s.
inline float InputValue(int port, int step, int microbatch, int i) {
  return 0.25f * static_cast<float>((port * 5 + step * 3 + microbatch * 7 + i * 11) % 17 - 8);
}

inline std::vector<StepScalars> Scalars(const LinearShape& shape, int step,
                                        const ParameterScalars* parameters) {
  std::vector<StepScalars> scalars(shape.microbatches);
  for (int m = 0; m < shape.microbatches; ++m) {
    scalars[m].step = step;
    scalars[m].microbatch = m;
    scalars[m].first_sample = m * shape.samples;
    scalars[m].valid_samples = shape.samples;
    scalars[m].parameters = parameters;
  }
  return scalars;
}

// One rank: executor and host memory of its ports.
struct LinearRank {
  int replica = 0;
  std::unique_ptr<Device> device;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Executor> executor;
  std::vector<std::vector<float>> memory;
  std::vector<const std::byte*> inputs;
  std::vector<float> y;
  std::vector<std::byte*> outputs;

  absl::Status Load(const std::string& directory, plan::RankPlan rank_plan, LocalHub& hub,
                    const ExecutorOptions& options) {
    device = MakeCpuDevice(1);
    replica = options.replica;
    transport =
        hub.Connect(static_cast<int>(rank_plan.rank() + options.replica * rank_plan.ranks()), *device);
    for (const plan::Port& port : rank_plan.inputs()) {
      for (int m = 0; m < static_cast<int>(rank_plan.microbatches()); ++m) {
        int64_t elements = 1;
        for (int64_t dim : rank_plan.tensors(port.tensor()).shape()) elements *= dim;
        memory.emplace_back(elements);
      }
    }
    for (auto& values : memory) inputs.push_back(reinterpret_cast<const std::byte*>(values.data()));
    absl::StatusOr<std::unique_ptr<Executor>> made =
        Executor::Create(std::move(rank_plan), directory, *device, *transport, options);
    if (made.ok()) executor = *std::move(made);
    return made.status();
  }

  void SetInputs(int step) {
    const plan::RankPlan& p = executor->rank_plan();
    const int microbatches = static_cast<int>(p.microbatches());
    for (size_t k = 0; k < memory.size(); ++k) {
      const int port = p.inputs(k / microbatches).name() == "x" ? 0 : 1;
      for (size_t i = 0; i < memory[k].size(); ++i)
        memory[k][i] = InputValue(port, step, replica * microbatches + k % microbatches, i);
    }
  }
};

struct LinearResult {
  absl::Status status;
  std::vector<double> losses, norms;
  std::vector<float> parameters;                // W0, W1, of replica 0
  std::vector<std::vector<float>> of_replicas;  // and of each
  std::vector<StepResult> last;    // by rank of all replicas; its names are the executor's and gone
  std::vector<std::string> nodes;  // StepResult::first.node of each
};

struct LinearOptions {
  int steps = 3;
  ExecutorOptions executor;
  LocalOptions local;
  bool evaluate = false;  // before every step
  // Changes the plan of a rank, or its inputs before a step.
  std::function<void(plan::RankPlan&)> edit;
  std::function<void(LinearRank&, int step)> disturb;
};

inline LinearResult RunLinear(const LinearShape& shape, const std::string& directory,
                              const LinearOptions& options = {}) {
  WriteLinearPlan(directory, shape);
  const int count = shape.ranks * shape.replicas;
  LocalOptions local = options.local;
  local.replicas = shape.replicas;
  LocalHub hub(count, local);
  LinearResult result;
  result.last.resize(count);
  result.nodes.resize(count);
  result.of_replicas.assign(shape.replicas, std::vector<float>(LinearParameters(shape).size()));
  std::vector<LinearRank> ranks(count);
  std::vector<absl::Status> statuses(count);
  auto run = [&](int r) -> absl::Status {
    LinearRank& rank = ranks[r];
    plan::RankPlan rank_plan = LinearPlan(shape, r % shape.ranks);
    ExecutorOptions own = options.executor;
    own.replica = r / shape.ranks;
    if (options.edit) options.edit(rank_plan);
    if (absl::Status status = rank.Load(directory, rank_plan, hub, own); !status.ok()) return status;
    const ParameterScalars rates[2] = {{kRate, 0}, {kRate, 0}};
    for (int step = 0; step < options.steps; ++step) {
      std::vector<StepScalars> scalars = Scalars(shape, step, rates);
      if (options.evaluate) {
        rank.SetInputs(100 + step);
        for (StepScalars& s : scalars) s.training = false;
        auto evaluated = rank.executor->Run(StepKind::kEval, scalars, {rank.inputs, {}});
        if (!evaluated.ok()) return evaluated.status();
        for (StepScalars& s : scalars) s.training = true;
      }
      rank.SetInputs(step);
      if (options.disturb) options.disturb(rank, step);
      auto done = rank.executor->Run(StepKind::kTrain, scalars, {rank.inputs, {}});
      if (!done.ok()) return done.status();
      result.last[r] = *done;
      result.nodes[r] = std::string(done->first.node);
      if (r == 0) {
        result.losses.push_back(*rank.executor->ReadScalar(rank_plan.loss()));
        result.norms.push_back(*rank.executor->ReadScalar(rank_plan.gradient_norm()));
      }
    }
    for (const plan::Parameter& parameter : rank_plan.parameters()) {
      absl::Status status = rank.executor->Read(
          parameter.tensor(),
          absl::MakeSpan(
              reinterpret_cast<std::byte*>(result.of_replicas[own.replica].data()) + parameter.offset(),
              parameter.length()));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  };
  auto thread = [&](int r) {
    statuses[r] = run(r);
    if (statuses[r].ok()) return;
    LinearRank& rank = ranks[r];
    if (rank.transport != nullptr) rank.transport->Abort(statuses[r]);
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < count; ++r) threads.emplace_back(thread, r);
  for (std::thread& t : threads) t.join();
  result.parameters = result.of_replicas[0];
  for (const absl::Status& status : statuses) {
    if (!status.ok()) result.status = status;
  }
  return result;
}

// The same training by definition, in float64.
inline LinearResult LinearByDefinition(const LinearShape& s, int steps) {
  const std::vector<float> initial = LinearParameters(s);
  std::vector<double> w(initial.begin(), initial.end());
  const int w1 = s.in * s.hidden;
  LinearResult result;
  for (int step = 0; step < steps; ++step) {
    std::vector<double> gradient(w.size(), 0.0);
    double sum = 0;
    const int count = s.microbatches * s.samples * s.out;
    for (int m = 0; m < s.microbatches; ++m) {
      for (int b = 0; b < s.samples; ++b) {
        std::vector<double> h(s.hidden, 0.0), dh(s.hidden, 0.0);
        for (int j = 0; j < s.hidden; ++j) {
          for (int i = 0; i < s.in; ++i) h[j] += InputValue(0, step, m, b * s.in + i) * w[i * s.hidden + j];
        }
        for (int o = 0; o < s.out; ++o) {
          double y = 0;
          for (int j = 0; j < s.hidden; ++j) y += h[j] * w[w1 + j * s.out + o];
          const double error = y - InputValue(1, step, m, b * s.out + o);
          sum += error * error;
          for (int j = 0; j < s.hidden; ++j) {
            gradient[w1 + j * s.out + o] += 2 * error * h[j] / count;
            dh[j] += 2 * error * w[w1 + j * s.out + o] / count;
          }
        }
        for (int i = 0; i < s.in; ++i) {
          for (int j = 0; j < s.hidden; ++j)
            gradient[i * s.hidden + j] += InputValue(0, step, m, b * s.in + i) * dh[j];
        }
      }
    }
    double squares = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      squares += gradient[i] * gradient[i];
      w[i] -= kRate * gradient[i];
    }
    result.losses.push_back(sum / count);
    result.norms.push_back(std::sqrt(squares));
  }
  result.parameters.assign(w.begin(), w.end());
  return result;
}

}  // namespace pipec::testing
