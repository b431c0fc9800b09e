// pipec: cuts an ONNX model into pipeline stages and writes the plan that piperun executes.
#include <filesystem>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/print.h"
#include "compiler/report/report.h"
#include "passes/chosen_schedule.h"
#include "passes/pass_manager.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/file_reader.h"
#include "runtime/base/status.h"
#include "tools/choose_plan.h"
#include "tools/compare_schedules.h"
#include "tools/compile_flags.h"
#include "tools/compile_module.h"
#include "tools/lists.h"
#include "tools/support/flags.h"
#include "tools/support/written.h"
#include "tools/write_onnx.h"
#include "tools/write_plan.h"

namespace pipec {
namespace {

struct PipecFlags {
  CompileFlags compile;
  std::string output, parameters;
  std::string schedule_file, onnx_directory, trace_file, report_file, measured_file, print_level, print_after;
  std::vector<std::string> disabled, compared;
  bool dry_run = false, json = false, timing = false;
  bool list_ops = false, list_schedules = false, list_passes = false, list_devices = false;

  bool prints_module() const { return !print_level.empty() || !print_after.empty(); }
  bool lists() const { return list_ops || list_schedules || list_passes || list_devices; }
};

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const PassInfo& pass : AllPasses()) names.emplace_back(pass.name);
  return names;
}

void AddFlags(FlagTable& table, PipecFlags& flags) {
  flags.compile.AddTo(table);
  table.Group("Result");
  table.String("o", "DIR", &flags.output, "the plan", "MODEL.plan");
  table.Choice("parameters", &flags.parameters, {"copy", "link"},
               "where the plan's parameters lie: in it, or in the model's files",
               "copy up to 1 GB, then link");
  table.OnOff("dry-run", &flags.dry_run, "report only; weights need not exist");
  table.OnOff("json", &flags.json, "the report as one JSON object, or a list as JSON");
  table.String("emit-schedule", "FILE.csv", &flags.schedule_file,
               "the schedule as PyTorch's compute-only CSV", "none");
  table.String("emit-onnx", "DIR", &flags.onnx_directory,
               "DIR/model.onnx and one file a stage: forward, backward and update; gradients are outputs "
               "grad:PARAMETER",
               "none");
  table.String("trace", "FILE.json", &flags.trace_file, "the modelled timeline as a Chrome trace", "none");
  table.String("report", "FILE.html", &flags.report_file, "one more copy of the plan's report.html", "none");
  table.List("compare", "NAME,...", &flags.compared, "show these schedules in the report too");
  table.String("measured", "TRACE", &flags.measured_file,
               "show a step that was measured (piperun --trace) in the report too", "none");
  table.Check([&flags]() -> absl::Status {
    for (const std::string& name : flags.compared) {
      if (FindSchedule(name) || name == kAutoSchedule) continue;
      std::vector<absl::string_view> names;
      for (const ScheduleInfo& info : AllSchedules()) names.push_back(info.name);
      names.push_back(kAutoSchedule);
      return absl::InvalidArgumentError(
          absl::StrCat("--compare: '", name, "' is not known; valid are ", absl::StrJoin(names, ", ")));
    }
    return absl::OkStatus();
  });
  table.Group("Look inside");
  table.Choice("print", &flags.print_level, {"model", "training", "staged", "scheduled", "planned"},
               "print the module at the end of this level instead of the report", "none");
  table.Add({.name = "print-after",
             .value = "PASS",
             .default_text = "none",
             .help = "print the module after this pass instead of the report; --list-passes names them",
             .choices = PassNames(),
             .parse = [&flags](absl::string_view text) -> absl::Status {
               flags.print_after = std::string(text);
               if (FindPass(text)) return absl::OkStatus();
               return absl::InvalidArgumentError(
                   absl::StrCat("'", text, "' is no pass; valid are ", absl::StrJoin(PassNames(), ", ")));
             }});
  table.OnOff("timing", &flags.timing, "print how long each pass took");
  table.List("disable-pass", "NAME,...", &flags.disabled, "leave these passes out");
  table.Check([&flags]() -> absl::Status {
    for (const std::string& name : flags.disabled) {
      if (FindPass(name)) continue;
      return absl::InvalidArgumentError(absl::StrCat("--disable-pass: '", name, "' is no pass; valid are ",
                                                     absl::StrJoin(PassNames(), ", ")));
    }
    return absl::OkStatus();
  });
  table.OnOff("list-ops", &flags.list_ops,
              "operators with their opsets, kernels and gradients");
  table.OnOff("list-schedules", &flags.list_schedules, "schedules: what each costs and needs");
  table.OnOff("list-passes", &flags.list_passes, "passes in their order");
  table.OnOff("list-devices", &flags.list_devices, "devices to plan for and to run on");
  table.Check([&flags] { return flags.lists() ? absl::OkStatus() : flags.compile.RequireModel(); });
}

// Whether the module is at its level alone: not on the way to the next, as it is between build-loss and
// build-update, and between partition-stages and insert-messages.
bool StillAt(const Module& module, const PassInfo& pass) {
  if (module.level == Level::kModel && (pass.training_only || module.training.loss_sum)) return false;
  return module.level >= Level::kStaged || module.stages.empty();
}

// Runs the pipeline or some passes, printing on the way what was asked for, but no drafts. Sets `shown` where a module
// was printed.
absl::Status Lower(const PipecFlags& flags, Module& module, absl::Span<const std::string> passes,
                   std::ostream& out, bool& shown) {
  std::vector<PassTiming> timings;
  std::string at_level = flags.print_level == Name(module.level) ? Print(module) : "";
  PassManagerOptions options;
  options.disabled = flags.disabled;
  if (flags.timing) options.timings = &timings;
  options.after_pass = [&](const PassInfo& pass, const Module& now) {
    if (pass.after == Level::kPlanned && flags.compile.context().options.draft_memory) return;
    if (flags.print_after == pass.name) {
      out << Print(now);
      shown = true;
    }
    if (flags.print_level == Name(now.level) && StillAt(now, pass)) at_level = Print(now);
  };
  const PassContext& context = flags.compile.context();
  RETURN_IF_ERROR(passes.empty() ? RunPipeline(module, context, options)
                                 : RunPasses(module, context, passes, options));
  out << at_level;
  shown |= !at_level.empty();
  for (const PassTiming& timing : timings) {
    out << absl::StrFormat("%-26s %9.3f ms%s\n", std::string(timing.name), timing.seconds * 1e3,
                           timing.changed ? "" : "  changed nothing");
  }
  return absl::OkStatus();
}

// How to run the plan on the user's own data.
std::string NextStep(const Module& module, const std::string& plan) {
  std::vector<std::string> arrays;
  const Value* labels = nullptr;
  std::vector<const Value*> others;
  for (const Value* input : module.graph.inputs()) {
    Shape shape = input->type.shape;
    if (input->batch_axis == 0)
      shape[0] = module.microbatch_size * module.schedule.shape.microbatches * module.replicas;
    arrays.push_back(absl::StrCat(input->name(), " ", ToString(TensorType{input->type.dtype, shape})));
    if (input->name() == "labels") {
      labels = input;
    } else {
      others.push_back(input);
    }
  }
  // What a file of tokens can feed: one [batch, sequence] input, and labels that are the same one token later.
  const bool tokens = others.size() == 1 && others[0]->type.dtype == DType::kInt64 &&
                      others[0]->type.shape.size() == 2 && (!labels || labels->type == others[0]->type);
  return absl::StrCat("next: piperun ", plan, tokens ? " --data=FILE.bin --tokens=u8" : " --data=FILE.npz",
                      "\n      a step reads ", absl::StrJoin(arrays, ", "), "\n");
}

std::string DefaultOutput(const std::string& model) {
  return std::filesystem::path(model).filename().replace_extension(".plan").string();
}

absl::StatusOr<std::optional<StepPicture>> ReadMeasured(const std::string& path, const Module& module) {
  if (path.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path));
  std::string trace;
  RETURN_IF_ERROR(file.Read(0, file.bytes(), [&trace](absl::string_view piece) {
    absl::StrAppend(&trace, piece);
    return absl::OkStatus();
  }));
  return MeasuredStep(trace, path, module);
}

absl::Status Compile(PipecFlags& flags) {
  flags.compile.allow_missing_weights = flags.dry_run;
  std::string directory = flags.output.empty() ? DefaultOutput(flags.compile.model()) : flags.output;
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  // Early: a long compilation shall not end with this.
  if (!flags.dry_run) RETURN_IF_ERROR(CheckTarget(directory));
  if (!flags.onnx_directory.empty()) RETURN_IF_ERROR(CheckOnnxDirectory(flags.onnx_directory));
  for (const auto& [flag, path] :
       {std::pair("--emit-schedule", &flags.schedule_file), std::pair("--trace", &flags.trace_file),
        std::pair("--report", &flags.report_file)}) {
    std::error_code none;
    if (!path->empty() && std::filesystem::equivalent(*path, flags.compile.model(), none))
      return absl::InvalidArgumentError(absl::StrCat(flag, "=", *path, " is the model"));
  }
  const bool replaces = std::filesystem::exists(directory);
  const CompileFlags as_given = flags.compile;
  std::optional<ChosenPlan> chosen;
  if (flags.compile.LeavesOpen()) {
    ASSIGN_OR_RETURN(chosen, ChoosePlan(as_given));
    flags.compile.UseCandidate(chosen->plan.candidates[0]);
  }
  std::ostream& printed = flags.json ? std::cerr : std::cout;
  bool shown = false;
  ASSIGN_OR_RETURN(const std::unique_ptr<Module> module,
                   CompileModule(flags.compile, [&](Module& now, absl::Span<const std::string> passes) {
                     return Lower(flags, now, passes, printed, shown);
                   }));
  if (flags.prints_module() && !shown) {
    return absl::InvalidArgumentError(
        flags.print_after.empty()
            ? absl::StrCat("--print=", flags.print_level, ": the module is never at this level, as it is compiled here")
            : absl::StrCat("--print-after=", flags.print_after,
                           ": the pass does not run, as the model is compiled here (--mode, --disable-pass)"));
  }

  if (module->level < Level::kPlanned) {
    if (flags.prints_module()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("without the passes of --disable-pass the module ends at level ", Name(module->level),
                     ", of which there is no plan; --print=", Name(module->level), " prints it"));
  }
  Report report = MakeReport(*module, flags.compile.context().options.cluster,
                             {.batch = as_given.gives_batch(), .microbatches = as_given.open().microbatches});
  if (chosen) AddCandidates(*chosen, report);
  ASSIGN_OR_RETURN(const std::optional<StepPicture> measured, ReadMeasured(flags.measured_file, *module));
  const std::string html =
      ReportHtml(*module, report, CompareSchedules(as_given, flags.compared, *module), measured);
  if (!flags.schedule_file.empty() && module->schedule.asynchronous()) {
    return absl::InvalidArgumentError(absl::StrCat("--emit-schedule: the steps of schedule ", module->schedule.name,
                                                   " overlap, which PyTorch's CSV cannot say"));
  }
  Written written;
  for (const std::string* path : {&flags.schedule_file, &flags.onnx_directory, &flags.trace_file, &flags.report_file}) {
    if (!path->empty()) written.Add(*path);
  }
  if (!flags.schedule_file.empty())
    RETURN_IF_ERROR(WriteFileAtomically(flags.schedule_file, ToCsv(module->schedule)));
  if (!flags.onnx_directory.empty()) RETURN_IF_ERROR(WriteOnnx(*module, flags.onnx_directory));
  if (!flags.trace_file.empty())
    RETURN_IF_ERROR(WriteFileAtomically(flags.trace_file, ModelledTrace(*module)));
  if (!flags.report_file.empty()) RETURN_IF_ERROR(WriteFileAtomically(flags.report_file, html));
  if (!flags.dry_run) {
    const ParameterMode mode = flags.parameters == "copy"   ? ParameterMode::kCopy
                               : flags.parameters == "link" ? ParameterMode::kLink
                                                            : ParameterMode::kAuto;
    RETURN_IF_ERROR(WritePlan(*module, flags.compile.model(), directory, mode, html,
                              flags.compile.context().options.cluster));
  }
  // Where the result is for programs, beside it.
  const bool reports = !flags.json && !flags.prints_module();
  if (flags.json) std::cout << ReportJson(report);
  if (reports) std::cout << ReportText(report);
  std::ostream& said = reports ? std::cout : std::cerr;
  if (reports && (!flags.dry_run || !written.lines().empty())) said << "\n";
  said << written.lines();
  if (flags.dry_run) return absl::OkStatus();
  said << (replaces ? "replaced the plan " : "wrote ") << directory << " (timeline: " << directory << "/report.html)\n"
       << NextStep(*module, directory);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  PipecFlags flags;
  FlagTable table("pipec", "MODEL [flags]",
                  "cut an ONNX model (.onnx, .onnxtxt) into pipeline stages and write a plan for piperun");
  AddFlags(table, flags);
  if (const std::optional<int> exit = table.Parse(argc, argv)) return *exit;
  if (flags.list_ops) std::cout << ListOps(flags.json);
  if (flags.list_schedules) std::cout << ListSchedules(flags.json);
  if (flags.list_passes) std::cout << ListPasses(flags.json);
  if (flags.list_devices) std::cout << ListDevices(flags.json);
  if (flags.lists()) return Done("pipec");
  if (absl::Status status = Compile(flags); !status.ok()) return Refuse("pipec", status);
  return Done("pipec");
}

}  // namespace
}  // namespace pipec

int main(int argc, char** argv) { return pipec::Main(argc, argv); }
