#include "tests/support/check_gradient.h"

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/schema/infer.h"
#include "passes/pass_manager.h"
#include "runtime/base/status.h"
#include "tests/support/float64.h"
#include "tests/support/interpreter.h"

namespace pipec {
namespace {

constexpr int kMoves = 12;

class Draws {
 public:
  // Uniform in [-1, 1).
  double Next() { return static_cast<double>(random_() >> 11) * 0x1p-52 - 1; }

 private:
  std::mt19937_64 random_{7};
};

absl::StatusOr<Value*> AddNode(Graph& graph, std::string op, std::vector<Value*> inputs,
                               Attributes attributes = {}) {
  NodeSpec spec{.op = std::move(op), .inputs = std::move(inputs), .attributes = std::move(attributes)};
  ASSIGN_OR_RETURN(spec.outputs, InferTypes(spec, 1));
  return graph.AddNode(std::move(spec))->output(0);
}

absl::Status AddLoss(Graph& graph, Draws& draws) {
  Value* loss = nullptr;
  const std::vector<Value*> outputs(graph.outputs.begin(), graph.outputs.end());
  for (Value* output : outputs) {
    if (output->type.dtype != DType::kFloat64 || output->type.elements() == 0) continue;
    std::string bytes;
    for (int64_t i = 0; i < output->type.elements(); ++i) {
      const double weight = draws.Next();
      bytes.append(reinterpret_cast<const char*>(&weight), sizeof(weight));
    }
    Value* weights = graph.AddConstant("weights", output->type, std::move(bytes));
    ASSIGN_OR_RETURN(Value* const weighted, AddNode(graph, "Mul", {output, weights}));
    Attributes dropped;
    dropped.Set("keepdims", int64_t{0});
    ASSIGN_OR_RETURN(Value* const sum, AddNode(graph, "ReduceSum", {weighted}, std::move(dropped)));
    if (!loss) {
      loss = sum;
    } else {
      ASSIGN_OR_RETURN(loss, AddNode(graph, "Add", {loss, sum}));
    }
  }
  if (!loss) return absl::CancelledError("no result of float64");
  graph.outputs = {loss};
  return absl::OkStatus();
}

// One parameter along one direction.
struct Comparison {
  double derivative = 0, difference = 0;
  double size = 0;  // of what the elements contribute
  double bend = 0;  // how far the differences to both sides are apart
  double jump = 0;  // how far those of the step and of half of it are apart

  // Not smooth here, as far as can be seen: what makes a difference of this size.
  bool bends() const {
    const double seen = std::abs(difference) + size;
    return !(std::abs(bend) <= 1e-4 * seen + 1e-7) || !(std::abs(jump) <= 1e-6 * seen);
  }
  bool agrees(double relative) const {
    return std::abs(derivative - difference) <= relative * (std::abs(difference) + size) + 1e-9;
  }
};

class Checker {
 public:
  Checker(const Module& module, Interpreter& interpreter, const CheckGradientOptions& options)
      : module_(module),
        interpreter_(interpreter),
        options_(options),
        loss_(interpreter.Data<double>(module.training.loss_sum)) {
    for (const Value* value : module.graph.Values()) {
      if (value->kind() == ValueKind::kParameter && value->type.dtype == DType::kFloat64)
        parameters_.push_back(value);
    }
  }

  absl::Status Check() {
    for (int move = 0; move < kMoves; ++move) {
      if (move > 0) Move();
      RETURN_IF_ERROR(interpreter_.Forward());
      RETURN_IF_ERROR(interpreter_.Backward());
      bool bends = !std::isfinite(*loss_);
      for (const Value* parameter : parameters_) {
        for (int k = 0; k < 2 && !bends; ++k) {
          ASSIGN_OR_RETURN(const Comparison c, Compare(parameter));
          if (c.agrees(options_.relative)) continue;
          bends = c.bends();
          if (bends) break;
          return absl::DataLossError(absl::StrCat("the gradient of '", parameter->name(), "' is ",
                                                  c.derivative, " along a direction, the difference ",
                                                  c.difference));
        }
      }
      if (!bends) return absl::OkStatus();
    }
    return absl::DataLossError("it bends or breaks wherever it was looked at");
  }

 private:
  // Away from corners and steps.
  void Move() {
    for (const Value* parameter : parameters_) {
      double* const x = interpreter_.Data<double>(parameter);
      for (int64_t i = 0; i < parameter->type.elements(); ++i) {
        if (!std::isfinite(x[i])) x[i] = 0;
        x[i] += 0.02 * (1 + std::abs(x[i])) * draws_.Next();
      }
    }
  }

  std::vector<const double*> GradientsOf(const Value* parameter) {
    std::vector<const double*> gradients;
    for (const TrainedParameter& trained : module_.training.parameters) {
      if (trained.parameter != parameter) continue;
      for (const Value* use : trained.accumulated) gradients.push_back(interpreter_.Data<double>(use));
    }
    return gradients;
  }

  absl::StatusOr<double> LossAt(double* x, const std::vector<double>& from,
                                const std::vector<double>& direction, double step) {
    for (size_t i = 0; i < from.size(); ++i) x[i] = from[i] + step * direction[i];
    const absl::Status status = interpreter_.Forward();
    std::copy(from.begin(), from.end(), x);
    if (!status.ok()) return status;
    return *loss_;
  }

  absl::StatusOr<Comparison> Compare(const Value* parameter) {
    double* const x = interpreter_.Data<double>(parameter);
    const std::vector<double> from(x, x + parameter->type.elements());
    std::vector<double> direction;
    for (double value : from)
      direction.push_back(std::isfinite(value) ? draws_.Next() * std::max(1.0, std::abs(value)) : 0);
    Comparison c;
    for (const double* gradient : GradientsOf(parameter)) {
      for (size_t i = 0; i < from.size(); ++i) {
        if (direction[i] == 0) continue;
        const double part = options_.factor * gradient[i] * direction[i];
        c.derivative += part;
        c.size += part * part;
      }
    }
    c.size = std::sqrt(c.size);
    double at[4];  // -2, -1, 1, 2 half steps
    for (int k = 0; k < 4; ++k) {
      ASSIGN_OR_RETURN(at[k], LossAt(x, from, direction, (k < 2 ? k - 2 : k - 1) * options_.step / 2));
    }
    ASSIGN_OR_RETURN(const double here, LossAt(x, from, direction, 0));
    const double whole = (at[3] - at[0]) / (2 * options_.step), half = (at[2] - at[1]) / options_.step;
    c.difference = (4 * half - whole) / 3;  // Richardson's extrapolation
    c.jump = half - whole;
    c.bend = (at[3] - here) / options_.step - (here - at[0]) / options_.step;
    return c;
  }

  const Module& module_;
  Interpreter& interpreter_;
  const CheckGradientOptions options_;
  const double* const loss_;
  std::vector<const Value*> parameters_;
  Draws draws_;
};

}  // namespace

absl::Status CheckGradient(Module& module, const CheckGradientOptions& options) {
  Draws draws;
  PassContext context;
  context.options.microbatches = 1;
  // What nobody uses need not have a form in float64.
  RETURN_IF_ERROR(RunPasses(module, context, {"eliminate-identity", "eliminate-dead"}));
  RETURN_IF_ERROR(WidenToFloat64(module.graph));
  RETURN_IF_ERROR(RunPasses(module, context,
                            {"eliminate-identity", "fold-constants", "lower-dropout", "eliminate-dead",
                             "fuse-attention", "fuse-transpose-matmul", "split-parameter-ops", "copy-outputs"}));
  RETURN_IF_ERROR(AddLoss(module.graph, draws));
  RETURN_IF_ERROR(RunPasses(module, context,
                            {"infer-batch-axis", "key-random", "build-loss", "lower-batch-normalization"}));
  const absl::Status built = RunPasses(module, context, {"build-gradients"});
  // What no gradient reaches must not matter.
  const bool reached = !absl::StrContains(built.message(), "no gradient reaches a parameter");
  if (reached) RETURN_IF_ERROR(built);
  ASSIGN_OR_RETURN(const std::unique_ptr<Interpreter> interpreter, Interpreter::Make(module.graph));
  return Checker(module, *interpreter, options).Check();
}

}  // namespace pipec
