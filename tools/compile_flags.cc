#include "tools/compile_flags.h"

#include <algorithm>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler/onnx/import.h"
#include "compiler/schedule/schedule.h"
#include "passes/chosen_schedule.h"
#include "passes/evaluate.h"
#include "passes/loss_terms.h"
#include "runtime/base/counted.h"
#include "runtime/base/regex.h"
#include "runtime/base/status.h"
#include "runtime/executor/step_block.h"
#include "tools/read_text.h"

namespace pipec {
namespace {

constexpr int kDefaultStages = 2;
constexpr int kDefaultMicrobatches = 32;
constexpr char kDefaultSchedule[] = "1f1b";
constexpr char kInferSchedule[] = "infer";
constexpr char kScheduleFile[] = ".csv";
constexpr char kDefaultOptimizer[] = "adamw";
constexpr int64_t kMaxBatch = int64_t{1} << 31;

std::vector<std::string> ScheduleNames() {
  std::vector<std::string> names;
  for (const ScheduleInfo& info : AllSchedules()) names.emplace_back(info.name);
  names.emplace_back(kAutoSchedule);
  return names;
}

absl::Status CheckLoss(absl::string_view text) {
  for (const char* known : {"auto", "cross-entropy", "mse", "bce"}) {
    if (text == known) return absl::OkStatus();
  }
  if (absl::ConsumePrefix(&text, "output:")) return ParseLossOutputs(text).status();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is not known; valid are auto, output:NAME[*WEIGHT],..., cross-entropy, mse, bce"));
}

absl::Status AddLora(absl::string_view text, std::vector<LoraTarget>* targets) {
  const size_t colon = text.rfind(':');
  LoraTarget target;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(text.substr(colon + 1), &target.rank) || target.rank < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not REGEX:RANK with a rank of 1 or more"));
  }
  target.regex = std::string(text.substr(0, colon));
  RETURN_IF_ERROR(ParseRegex(target.regex).status());
  targets->push_back(std::move(target));
  return absl::OkStatus();
}

// The divisor of `number` that is nearest to `wanted`.
int64_t NearestDivisor(int64_t number, int64_t wanted) {
  for (int64_t distance = 0;; ++distance) {
    if (wanted + distance <= number && number % (wanted + distance) == 0) return wanted + distance;
    if (wanted - distance >= 1 && number % (wanted - distance) == 0) return wanted - distance;
    if (distance > number + wanted) return 1;
  }
}

}  // namespace

void CompileFlags::AddTo(FlagTable& table) {
  CompileOptions& options = context_.options;
  table.Positional("MODEL", &model_, /*required=*/false);
  table.Group("Pipeline");
  table.Choice("mode", &mode_, {"train", "infer"}, "what the plan does",
               "train; infer if the schedule is infer");
  table.IntOrAuto("stages", "P", &stages_, &stages_open_, 1,
                  "ranks of one pipeline; the model is cut into P x V stages; auto: as many, up to the "
                  "devices there are, "
                  "as take least time a sample",
                  absl::StrCat(kDefaultStages));
  table.Int("virtual-stages", "V", &options.virtual_stages, 1, "stages a rank holds",
            "1, or what the schedule needs");
  table.Add({.name = "schedule",
             .value = absl::StrCat(absl::StrJoin(ScheduleNames(), "|"), "|FILE.csv"),
             .default_text = "1f1b; infer in infer mode",
             .help = "order of the work; --list-schedules describes them; auto: the fastest of all that fit, "
                     "and of what a "
                     "search finds; a file is in PyTorch's CSV",
             .choices = ScheduleNames(),
             .parse = [this](absl::string_view text) {
               schedule_ = std::string(text);
               return FindSchedule(text) || text == kAutoSchedule || absl::EndsWith(text, kScheduleFile)
                          ? absl::OkStatus()
                          : absl::InvalidArgumentError(absl::StrCat(
                                "'", text, "' is not known; valid are ", absl::StrJoin(ScheduleNames(), ", "),
                                ", or a file whose name ends in ", kScheduleFile));
             }});
  table.IntOrAuto(
      "microbatches", "M", &microbatches_, &microbatches_open_, 1,
      absl::StrCat(
          "equal parts of a batch; auto: as many as take least time a sample, of the divisors of --batch, "
          "or of powers of two, with which the batch grows, up to ",
          kMicrobatchesARank, " a rank and at least ", kFewestMicrobatches),
      absl::StrCat(kDefaultMicrobatches, "; pipedream: 1"));
  table.Int("batch", "B", &batch_, 1, "samples per step",
            "M x R x the model's own batch, or M x R if that is symbolic");
  table.Int("replicas", "R", &options.replicas, 1,
            "data-parallel copies of the pipeline, on other devices, which share the batch", "1");
  table.List("cut", "NAME,...", &options.cut, "cut at these values instead of where the partitioner would");
  table.Group("Model");
  table.Map("dim", "NAME=N", &dims_, 0, "bind a symbolic dimension");
  table.Map("input", "NAME=range|ones|zeros|FILE.npy", &inputs_,
            "bind an input to a constant: positions, masks");
  table.OnOff("allow-links", &allow_links_,
              "external data may be links to files of the owner of the model's folder, as in a cache");
  table.Group("Training");
  table.Add(
      {.name = "loss",
       .value = "auto|output:NAME[*WEIGHT],...|cross-entropy|mse|bce",
       .default_text = loss_,
       .help =
           "auto: a scalar output is the loss, else cross-entropy over the last axis against labels; several "
           "outputs add up, each times its weight",
       .choices = {"auto", "cross-entropy", "mse", "bce"},
       .parse = [this](absl::string_view text) {
         loss_ = std::string(text);
         return CheckLoss(text);
       }});
  table.Double("label-smoothing", "SHARE", &options.label_smoothing, 0,
               "cross-entropy: weight of all other classes, 0 to 1");
  table.Int("ignore-index", "CLASS", &options.ignore_index, std::numeric_limits<int64_t>::min(),
            "cross-entropy: labels of this class weigh nothing");
  table.String("class-weights", "FILE.npy", &options.class_weights,
               "cross-entropy: what each class weighs, of the output's type", "all 1");
  table.Choice("optimizer", &optimizer_, {"sgd", "momentum", "nesterov", "adam", "adamw", "adagrad"},
               "update rule", kDefaultOptimizer);
  table.Choice("precision", &precision_, {"fp32", "bf16", "fp16"},
               "what is computed in; parameters, sums and optimizer state stay fp32", "fp32");
  table.Regex("train", &options.train_regex, "parameters that learn", "all float parameters");
  table.Regex("freeze", &options.freeze_regex, "parameters that do not learn", "none");
  table.Add({.name = "lora",
             .value = "REGEX:RANK",
             .default_text = "none",
             .help = "weights of MatMul and Gemm that learn as a product of low rank, everything else stays",
             .repeated = true,
             .parse = [&options](absl::string_view text) { return AddLora(text, &options.lora); }});
  table.Choice(
      "recompute", &recompute_, {"none", "all", "auto"},
      "stages that run their forward nodes again for the backward pass instead of keeping activations; "
      "auto: only if memory asks for it");
  table.Choice("staleness", &staleness_, {"none", "lr"},
               "schedules without flush: lr scales the learning rate by how late the update of a stage is");
  table.Int("seed", "N", &seed_, 0, "initial values of added parameters");
  devices_.AddTo(table);
  table.Check([this]() -> absl::Status {
    // What a plan can say; far below where products leave the range of a number.
    constexpr int64_t kStages = 1 << 16, kMicrobatches = 1 << 24;
    const int64_t stages = int64_t{std::max(stages_, 1)} * std::max(context_.options.virtual_stages, 1);
    if (int64_t{std::max(stages_, 1)} * context_.options.replicas > kStages) {
      return absl::InvalidArgumentError(
          absl::StrCat("a plan has at most ", kStages, " ranks on all replicas (--stages, --replicas)"));
    }
    if (stages > kStages || microbatches_ > kMicrobatches || batch_ > kMaxBatch) {
      return absl::InvalidArgumentError(
          absl::StrCat("a plan has at most ", kStages, " stages, ", kMicrobatches, " microbatches and ",
                       kMaxBatch, " samples (--stages, --virtual-stages, --microbatches, --batch)"));
    }
    return absl::OkStatus();
  });
  table.Check([this]() -> absl::Status {
    if (stages_open_ && !context_.options.cut.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--cut names ", Counted(context_.options.cut.size(), "value", "values"),
                       " to cut at, which --stages=auto leaves open; ",
                       "--stages=", context_.options.cut.size() + 1, " fits them"));
    }
    if (absl::EndsWith(schedule_, kScheduleFile) && (stages_open_ || microbatches_open_)) {
      return absl::InvalidArgumentError(absl::StrCat("--schedule=", schedule_, " says how many --",
                                                     stages_open_ ? "stages" : "microbatches",
                                                     " there are; leave out auto"));
    }
    return absl::OkStatus();
  });
  table.Check([this] { return CheckTogether(); });
  table.Check([this] {
    return context_.options.label_smoothing <= 1
               ? absl::OkStatus()
               : absl::InvalidArgumentError("--label-smoothing: must be at most 1");
  });
  table.Check([this] {
    const bool for_classes = context_.options.label_smoothing > 0 ||
                             !context_.options.class_weights.empty() ||
                             context_.options.ignore_index != CompileOptions().ignore_index;
    return !for_classes || loss_ == "auto" || loss_ == "cross-entropy"
               ? absl::OkStatus()
               : absl::InvalidArgumentError(
                     absl::StrCat("--label-smoothing, --ignore-index and --class-weights belong to "
                                  "--loss=cross-entropy, not to --loss=",
                                  loss_));
  });
}

bool CompileFlags::Infers() const { return mode_.empty() ? schedule_ == kInferSchedule : mode_ == "infer"; }

std::string CompileFlags::ScheduleName() const {
  return !schedule_.empty() ? schedule_ : Infers() ? kInferSchedule : kDefaultSchedule;
}

absl::Status CompileFlags::CheckTogether() const {
  const CompileOptions &options = context_.options, defaults;
  for (const auto& [flag, given] :
       {std::pair("--loss", loss_ != "auto"), std::pair("--optimizer", !optimizer_.empty()),
        std::pair("--train", !options.train_regex.empty()), std::pair("--freeze", !options.freeze_regex.empty()),
        std::pair("--lora", !options.lora.empty()), std::pair("--class-weights", !options.class_weights.empty()),
        std::pair("--label-smoothing", options.label_smoothing != defaults.label_smoothing),
        std::pair("--ignore-index", options.ignore_index != defaults.ignore_index),
        std::pair("--recompute", recompute_ != "auto"), std::pair("--replicas", options.replicas > 1)}) {
    if (Infers() && given) return absl::InvalidArgumentError(absl::StrCat(flag, " belongs to --mode=train"));
  }
  const ScheduleInfo* info = FindSchedule(ScheduleName());
  const bool is_late = info && info->late_updates;
  if (options.replicas > 1 && is_late) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--replicas=", options.replicas,
        ": replicas add up their gradients at the end of a step, which --schedule=", info->name,
        " does not have; --schedule=1f1b or another with a flush works"));
  }
  if (staleness_ == "lr" && !is_late) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--staleness=lr scales the learning rate by how late updates are, and with --schedule=", ScheduleName(),
        " none is; --schedule=pipedream or pipedream-2bw works"));
  }
  return absl::OkStatus();
}

// A file says all of its shape; flags may repeat it.
absl::Status CompileFlags::ReadScheduleFile() {
  CompileOptions& options = context_.options;
  if (!absl::EndsWith(schedule_, kScheduleFile)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string contents, ReadText("schedule", schedule_));
  ASSIGN_OR_RETURN(Schedule schedule, FromCsv(contents, schedule_));
  auto take = [&](absl::string_view flag, int& given, int value) {
    if (given != 0 && given != value) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, "=", given, ", but the schedule ", schedule_, " has ", value));
    }
    given = value;
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(take("stages", stages_, schedule.shape.ranks));
  RETURN_IF_ERROR(take("virtual-stages", options.virtual_stages, schedule.shape.virtual_stages));
  RETURN_IF_ERROR(take("microbatches", microbatches_, schedule.shape.microbatches));
  options.schedule_from_file = std::make_shared<const Schedule>(std::move(schedule));
  return absl::OkStatus();
}

void CompileFlags::CutWithin(std::vector<int64_t> bytes_by_rank, bool recompute_all) {
  context_.options.cut_memory = std::move(bytes_by_rank);
  if (recompute_all) recompute_ = "all";
}

void CompileFlags::UseSchedule(absl::string_view name, const Module& other) {
  const ScheduleShape& shape = other.schedule.shape;
  mode_ = other.mode == Mode::kTrain ? "train" : "infer";
  schedule_ = std::string(name);
  stages_ = shape.ranks;
  microbatches_ = shape.microbatches;
  stages_open_ = microbatches_open_ = false;
  int& virtual_stages = context_.options.virtual_stages;
  const ScheduleInfo* info = FindSchedule(name);
  if (virtual_stages > 0 && info && !info->generate(shape).ok()) virtual_stages = 0;
}

absl::StatusOr<int64_t> CompileFlags::Resolve() {
  CompileOptions& options = context_.options;
  options.seed = seed_;
  options.loss = loss_;
  if (stages_open_ || microbatches_open_) {
    return absl::UnimplementedError(
        absl::StrCat("--", stages_open_ ? "stages" : "microbatches",
                     "=auto compiles the model many times, which only pipec does; give a number"));
  }
  RETURN_IF_ERROR(ReadScheduleFile());
  options.mode = Infers() ? Mode::kInfer : Mode::kTrain;
  options.schedule = ScheduleName();
  options.ranks = stages_ > 0 ? stages_ : kDefaultStages;
  options.microbatches = microbatches_;
  RETURN_IF_ERROR(CheckTogether());
  const ScheduleInfo* info = FindSchedule(options.schedule);
  const bool each_updates = info && info->updates_each_microbatch;
  options.lr_by_delay = staleness_ == "lr";
  if (microbatches_ == 0) {
    // A batch that the default does not divide says how many there can be.
    options.microbatches = each_updates ? 1 : kDefaultMicrobatches;
    while (batch_ > 0 && batch_ % (static_cast<int64_t>(options.microbatches) * options.replicas) != 0 &&
           options.microbatches > 1) {
      --options.microbatches;
    }
  }
  options.optimizer = optimizer_.empty() ? kDefaultOptimizer : optimizer_;
  options.precision = precision_ == "bf16"   ? DType::kBFloat16
                      : precision_ == "fp16" ? DType::kFloat16
                                             : DType::kFloat32;
  options.recompute = recompute_ == "all"    ? Recompute::kAll
                      : recompute_ == "none" ? Recompute::kNone
                                             : Recompute::kAuto;
  if (stages_ == 0) Assume(absl::StrCat(Counted(options.ranks, "rank", "ranks"), " (--stages)"));
  if (schedule_.empty()) Assume(absl::StrCat("schedule ", options.schedule, " (--schedule)"));
  if (microbatches_ == 0) {
    Assume(absl::StrCat(Counted(options.microbatches, "microbatch", "microbatches"), " (--microbatches)"));
  }
  if (optimizer_.empty() && options.mode == Mode::kTrain) {
    Assume(absl::StrCat("optimizer ", options.optimizer, " (--optimizer)"));
  }
  ASSIGN_OR_RETURN(options.cluster, devices_.Resolve(options.ranks, options.replicas, notes_));
  AskForWorkspace();

  const int64_t parts = static_cast<int64_t>(options.microbatches) * options.replicas;
  if (batch_ == 0) return 0;
  if (batch_ % parts != 0) {
    const int64_t below = batch_ / parts * parts;
    return absl::InvalidArgumentError(absl::StrCat(
        "--batch=", batch_, " cannot be divided into ", parts, " equal microbatches; ",
        batch_ % options.replicas != 0 ? "--replicas=" : "--microbatches=",
        batch_ % options.replicas != 0 ? NearestDivisor(batch_, options.replicas)
                                       : NearestDivisor(batch_ / options.replicas, options.microbatches),
        " or --batch=", below > 0 && batch_ - below <= parts / 2 ? below : below + parts, " would do"));
  }
  return batch_ / parts;
}

void CompileFlags::AskForWorkspace() {
  // As piperun shares them out.
  const int threads = std::max<int>(1, static_cast<int>(std::thread::hardware_concurrency()) /
                                           (context_.options.ranks * context_.options.replicas));
  std::vector<bool> known;  // by rank
  for (const DeviceProfile& device : context_.options.cluster.devices) known.push_back(device.name == "cpu");
  context_.options.workspace_bytes = [kernels = kernels_, threads, known](const Node& node, int rank) {
    return known[rank] ? kernels->BytesOf(node, threads) : 0;
  };
  // GPUs are behind their host.
  context_.options.step_bytes = [known](int rank, int64_t microbatches, int64_t parameters,
                                        absl::Span<const int64_t> input_bytes) {
    return known[rank] ? 0 : StepBlock::DeviceBytes(microbatches, parameters, input_bytes);
  };
}

absl::StatusOr<std::unique_ptr<Module>> CompileFlags::Import() {
  ImportOptions import;
  import.dims = dims_;
  import.bound_inputs = inputs_;
  import.allow_missing_weights = allow_missing_weights;
  import.allow_links = allow_links_;
  import.evaluate = Evaluate;
  ASSIGN_OR_RETURN(import.microbatch_size, Resolve());
  import.drop_refused_outputs = context_.options.mode == Mode::kTrain;
  import.infers = context_.options.mode == Mode::kInfer;
  import.microbatches = context_.options.microbatches * context_.options.replicas;
  ASSIGN_OR_RETURN(std::unique_ptr<Module> module, ImportModel(model_, import));
  module->mode = context_.options.mode;
  module->replicas = context_.options.replicas;
  const int64_t parts = static_cast<int64_t>(context_.options.microbatches) * module->replicas;
  if (module->microbatch_size > kMaxBatch / parts) {
    return absl::InvalidArgumentError(absl::StrCat(
        model_, ": ", Counted(module->microbatch_size, "sample", "samples"), " a microbatch, times ",
        Counted(parts, "microbatch", "microbatches"), ", is above ", kMaxBatch, " samples"));
  }
  if (batch_ == 0) {
    const int64_t batch = module->microbatch_size * context_.options.microbatches * module->replicas;
    Assume(absl::StrCat("batch ", batch, ", ", module->microbatch_size, " a microbatch (--batch)"));
  }
  if (module->mode == Mode::kTrain && context_.options.train_regex.empty() &&
      context_.options.freeze_regex.empty() && context_.options.lora.empty()) {
    Assume("all float parameters learn (--train, --freeze)");
  }
  module->notes.insert(module->notes.begin(), notes_.begin(), notes_.end());
  return module;
}

}  // namespace pipec
