#include "tools/run_flags.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "tools/support/build.h"

namespace pipec {
namespace {

Flag Setting(std::string name, PerParameter* target, std::string default_text, std::string help) {
  return {.name = std::move(name),
          .value = "VALUE|REGEX=VALUE",
          .default_text = std::move(default_text),
          .help = std::move(help),
          .repeated = true,
          .parse = [target](absl::string_view text) { return AddSetting(text, target); }};
}

// A number in [least, below) that has no default of its own.
template <typename T>
Flag Number(std::string name, std::string value, T least, std::optional<T>* target, std::string default_text,
            std::string help, double below = std::numeric_limits<double>::infinity()) {
  return {
      .name = std::move(name),
      .value = std::move(value),
      .default_text = std::move(default_text),
      .help = std::move(help),
      .parse = [target, least, below](absl::string_view text) -> absl::Status {
        double number;
        if (!absl::SimpleAtod(text, &number) || !std::isfinite(number) ||
            static_cast<double>(static_cast<T>(number)) != number || number < static_cast<double>(least)) {
          return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a number from ", least, " on"));
        }
        if (number >= below) {
          return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not below ", below));
        }
        *target = static_cast<T>(number);
        return absl::OkStatus();
      }};
}

void AddData(FlagTable& table, RunFlags& flags) {
  RunOptions& options = flags.options;
  table.Group("Data");
  table.String(
      "data", "PATH", &options.data,
      ".npz, .safetensors, a folder of .npy: arrays matched to inputs by name; .bin tokens; synthetic",
      "required");
  table.String("eval-data", "PATH", &options.eval_data,
               "evaluates on these samples: loss, and accuracy with class labels", "none");
  table.Int("eval-every", "STEPS", &options.eval_every, 0, "evaluate every so many steps",
            "before the first step and after the last");
  table.Add({.name = "tokens",
             .value = "u8|u16|u32",
             .default_text = "",
             .help = "how a .bin file stores its tokens",
             .choices = {"u8", "u16", "u32"},
             .parse = [&options](absl::string_view text) -> absl::Status {
               if (text == "u8") return options.tokens = TokenType::kU8, absl::OkStatus();
               if (text == "u16") return options.tokens = TokenType::kU16, absl::OkStatus();
               if (text == "u32") return options.tokens = TokenType::kU32, absl::OkStatus();
               return absl::InvalidArgumentError(
                   absl::StrCat("'", text, "' is not known; valid are u8, u16, u32"));
             }});
  table.Add(Number<int64_t>("steps", "N", 0, &options.steps, "1 epoch", "how many steps to train"));
  table.Add(Number<double>("epochs", "N", 0, &options.epochs, "1", "how often to go through the data", 1e9));
  table.OnOff("shuffle", &options.shuffle, "another order in every epoch, a function of --seed");
  table.Check([&options] {
    return options.steps.has_value() && options.epochs.has_value()
               ? absl::InvalidArgumentError("--steps and --epochs exclude each other")
               : absl::OkStatus();
  });
  table.Check([&flags] {
    return flags.options.data.empty() && !flags.verify
               ? absl::InvalidArgumentError("--data is required (--data=synthetic makes some)")
               : absl::OkStatus();
  });
}

void AddOptimizer(FlagTable& table, RunFlags& flags) {
  Hyperparameters& h = flags.options.hyperparameters;
  const char* kDefault = "PyTorch's, printed at the start";
  table.Group("Optimizer");
  table.Add(Setting("lr", &h.lr, kDefault,
                    "learning rate, of all parameters or of those whose name the expression finds"));
  table.Add({.name = "lr-schedule",
             .value = "NAME",
             .default_text = "constant",
             .help = "constant, linear, cosine, step or one-cycle",
             .choices = {"constant", "linear", "cosine", "step", "one-cycle"},
             .parse = [&h](absl::string_view text) -> absl::Status {
               ASSIGN_OR_RETURN(h.schedule, ParseLrSchedule(text));
               return absl::OkStatus();
             }});
  table.Int("warmup-steps", "N", &h.warmup_steps, 0, "steps in which the learning rate rises to its value");
  table.Add(Setting("weight-decay", &h.weight_decay, kDefault, "weight decay, per parameter likewise"));
  table.Add(Number<double>("momentum", "VALUE", 0.0, &h.momentum, "0.9", "momentum, nesterov"));
  table.Add(Number<double>("beta1", "VALUE", 0.0, &h.beta1, "0.9", "adam, adamw", 1.0));
  table.Add(Number<double>("beta2", "VALUE", 0.0, &h.beta2, "0.999", "adam, adamw", 1.0));
  table.Add(Number<double>("eps", "VALUE", 0.0, &h.eps, "1e-8; adagrad 1e-10", "adam, adamw, adagrad"));
  table.Double("clip-norm", "NORM", &h.clip_norm, 0, "scale the gradients down to this global norm", "off");
  table.Double("clip-value", "VALUE", &h.clip_value, 0, "cut every gradient's elements to +-VALUE", "off");
}

}  // namespace

void AddRunFlags(FlagTable& table, RunFlags& flags) {
  RunOptions& options = flags.options;
  table.Positional("PLAN", &flags.plan);
  AddData(table, flags);
  AddOptimizer(table, flags);
  table.Group("Results");
  table.String("export", "DIR", &options.export_directory,
               "model.onnx and model.safetensors with the trained parameters", "none");
  table.String("outputs", "FILE.npz", &options.outputs, "infer mode: every output, samples in input order",
               "none");
  table.String("metrics", "FILE.jsonl", &options.metrics, "one object a step: step, loss, lr, grad_norm",
               "none");
  table.String("trace", "FILE.json", &options.trace,
               "what really happened in the last steps, as a Chrome trace", "none");
  table.String("profile", "FILE", &options.profile, "measured cost of every node", "none");
  table.OnOff("json", &flags.json, "the result as one JSON object");
  table.Group("Execution");
  table.Choice("device", &flags.device,
               {"cpu",
#if PIPEC_CUDA
                "cuda",
#endif
                "null", "replay"},
               "null: no arithmetic; replay: none, but kernels and messages take their modelled time", "",
               MissingInBuild());
  table.Check([&flags, &options]() -> absl::Status {
    if (flags.device != "null" && flags.device != "replay") return absl::OkStatus();
    for (const auto& [flag, path] :
         {std::pair("--export", &options.export_directory), std::pair("--outputs", &options.outputs)}) {
      if (path->empty()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": device ", flags.device, " computes nothing that could be kept"));
    }
    return absl::OkStatus();
  });
  table.Choice("transport", &flags.transport,
               {"local",
#if PIPEC_CUDA
                "nccl"
#endif
               },
               "the ranks are threads of this process; nccl: with a GPU each", "", MissingInBuild());
  table.Check([&flags] {
    return flags.transport == "nccl" && flags.device != "cuda"
               ? absl::InvalidArgumentError(
                     absl::StrCat("--transport=nccl connects GPUs: it needs --device=cuda, not ", flags.device))
               : absl::OkStatus();
  });
  table.Int("threads", "N", &flags.threads, 1, "threads of each rank", "cores / ranks, at least 1");
  table.Add({.name = "timeout",
             .value = "SECONDS",
             .default_text = "300",
             .help = "how long a rank waits for a message",
             .parse = [&options](absl::string_view text) -> absl::Status {
               double seconds;
               if (!absl::SimpleAtod(text, &seconds) || !(seconds > 0) || seconds > 1e9) {
                 return absl::InvalidArgumentError(
                     absl::StrCat("'", text, "' is not a number of seconds above 0"));
               }
               options.executor.timeout = absl::Seconds(seconds);
               return absl::OkStatus();
             }});
  table.OnOff("check-finite", &options.executor.check_finite,
              "look for NaN and infinity after every instruction");
#if PIPEC_CUDA
  table.OnOff("no-graph", &flags.no_graph, "device cuda: enqueue every step piece by piece, not as a graph");
#endif
  table.OnOff("verify", &flags.verify, "check the plan and stop");
  table.Add({.name = "seed",
             .value = "N",
             .default_text = "0",
             .help = "data order, dropout, synthetic data",
             .parse = [&options](absl::string_view text) -> absl::Status {
               return absl::SimpleAtoi(text, &options.seed) ? absl::OkStatus()
                                                            : absl::InvalidArgumentError(absl::StrCat(
                                                                  "'", text, "' is not a number from 0 on"));
             }});
}

}  // namespace pipec
