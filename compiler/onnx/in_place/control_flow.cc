// Control flow whose course is known: the branch that is taken, and as many copies of a loop's body as it has
// iterations. In infer mode also such as only the run knows: both branches, and all iterations that there can
// be, of which results are chosen.
//
//   y = If<then_branch, else_branch>(true)      ->  the nodes of then_branch
//   y = If<then_branch, else_branch>(c)         ->  those of both;  y = Where(c, then, else)
//   s', y = Loop<body>(2, true, s)              ->  body(0, s) -> s1, y0;  body(1, s1) -> s', y1;  y = [y0,
//   y1] s' = Loop<body>(2, c, s)                    ->  body(0, s) -> c1, t1;  s1 = Where(c, t1, s);
//                                                   body(1, s1) -> c2, t2;  s' = Where(And(c, c1), t2, s1)
//
// So what is not taken is computed all the same: a node in it that refuses its data (an index out of range)
// ends the run.
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/in_place/choose.h"
#include "compiler/onnx/in_place/in_place.h"
#include "compiler/onnx/in_place/known_numbers.h"
#include "compiler/onnx/in_place/stack_tensors.h"
#include "compiler/onnx/schema/emit_node.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::StatusOr<std::vector<Meaning>> ImportBranch(const InPlaceNode& node, absl::string_view branch,
                                                  const std::string& prefix, InPlaceImporter& importer) {
  ASSIGN_OR_RETURN(const onnx::GraphProto* body, node.Body(branch));
  if (body->output_size() < node.outputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", node.outputs, " results, but its ", branch, " has ", body->output_size()));
  }
  return importer.ImportBody(*body, prefix, {});
}

// An input of the model that `value` depends on; null if there is none.
const Value* InputBehind(const Value* value) {
  std::vector<const Value*> open = {value};
  absl::flat_hash_set<const Value*> seen = {value};
  while (!open.empty()) {
    const Value* next = open.back();
    open.pop_back();
    if (next->kind() == ValueKind::kInput) return next;
    if (!next->producer()) continue;
    for (const Value* operand : next->producer()->inputs()) {
      if (operand && seen.insert(operand).second) open.push_back(operand);
    }
  }
  return nullptr;
}

// Both branches must fit, as it is not known which is taken.
absl::StatusOr<std::vector<Meaning>> ImportOneOfBoth(const InPlaceNode& node, const Value& condition,
                                                     absl::string_view branch, const std::string& prefix,
                                                     InPlaceImporter& importer) {
  absl::StatusOr<std::vector<Meaning>> results = ImportBranch(node, branch, prefix, importer);
  if (results.ok()) return results;
  const Value* input = InputBehind(&condition);
  return absl::Status(
      results.status().code(),
      absl::StrCat("only the run knows its condition, so that both branches must fit",
                   input ? absl::StrCat(" (--input ", input->name(), "=FILE.npy decides now)") : "", "; ",
                   branch, ": ", results.status().message()));
}

// Both branches, whose results are chosen from when the condition is known.
absl::StatusOr<std::vector<Meaning>> ImportBoth(const InPlaceNode& node, InPlaceImporter& importer) {
  ASSIGN_OR_RETURN(Value * condition, ConditionScalar(importer, absl::StrCat(node.name, "/condition"),
                                                      node.operand(0), "condition"));
  ASSIGN_OR_RETURN(
      const std::vector<Meaning> yes,
      ImportOneOfBoth(node, *condition, "then_branch", absl::StrCat(node.name, "/then/"), importer));
  ASSIGN_OR_RETURN(
      const std::vector<Meaning> no,
      ImportOneOfBoth(node, *condition, "else_branch", absl::StrCat(node.name, "/else/"), importer));
  std::vector<Meaning> results;
  for (int k = 0; k < node.outputs; ++k) {
    ASSIGN_OR_RETURN(Meaning chosen, Choose(importer, absl::StrCat(node.name, "/", node.proto.output(k)),
                                            condition, yes[k], no[k]));
    results.push_back(std::move(chosen));
  }
  return results;
}

absl::StatusOr<std::vector<Meaning>> ImportIf(const InPlaceNode& node, InPlaceImporter& importer) {
  const absl::StatusOr<int64_t> condition = KnownInt(node.operand(0), "condition");
  if (absl::IsUnimplemented(condition.status()) && importer.infers() &&
      std::holds_alternative<Value*>(node.operand(0))) {
    return ImportBoth(node, importer);
  }
  RETURN_IF_ERROR(condition.status());
  return ImportBranch(node, *condition ? "then_branch" : "else_branch", absl::StrCat(node.name, "/"),
                      importer);
}

// What a Loop goes through, by ONNX's table: a trip count and a condition, each of which may be absent.
struct Course {
  std::optional<int64_t> trips;
  bool has_condition = false;
  bool condition = true;    // false once the loop is known to be over
  Value* active = nullptr;  // whether the next iteration counts, if only the run knows

  bool GoesOn(int64_t iteration) const { return condition && (!trips || iteration < *trips); }
};

// Another condition that must hold for the loop to go on.
absl::Status AddCondition(const Meaning& condition, const std::string& name, absl::string_view what,
                          InPlaceImporter& importer, Course& course) {
  const absl::StatusOr<int64_t> known = KnownInt(condition, what);
  if (known.ok()) course.condition = *known != 0;
  if (!absl::IsUnimplemented(known.status()) || !importer.infers() ||
      !std::holds_alternative<Value*>(condition)) {
    return known.status();
  }
  if (!course.trips) {
    return absl::UnimplementedError(
        absl::StrCat("its ", what, ", '", std::get<Value*>(condition)->name(),
                     "', is known to the run only, and no trip count says how often it may go on"));
  }
  RETURN_IF_ERROR(CheckParts(*course.trips));
  ASSIGN_OR_RETURN(Value * holds, ConditionScalar(importer, name, condition, what));
  if (course.active) {
    ASSIGN_OR_RETURN(const std::vector<Value*> both,
                     importer.Emit({.op = "And", .name = name, .inputs = {course.active, holds}}));
    holds = both[0];
  }
  course.active = holds;
  return absl::OkStatus();
}

absl::StatusOr<Course> ReadCourse(const InPlaceNode& node, InPlaceImporter& importer) {
  Course course;
  if (!std::holds_alternative<Absent>(node.operand(0))) {
    ASSIGN_OR_RETURN(course.trips, KnownInt(node.operand(0), "trip count"));
  }
  course.has_condition = !std::holds_alternative<Absent>(node.operand(1));
  if (course.has_condition) {
    RETURN_IF_ERROR(
        AddCondition(node.operand(1), absl::StrCat(node.name, "/active"), "condition", importer, course));
  } else if (!course.trips) {
    return absl::InvalidArgumentError("has neither a trip count nor a condition, so that it never ends");
  }
  return course;
}

// The bodies, one after the other, then the stacked results.
class Unrolling {
 public:
  Unrolling(const InPlaceNode& node, const onnx::GraphProto& body, InPlaceImporter& importer)
      : node_(node), body_(body), importer_(importer), states_(node.operands) {
    states_.erase(states_.begin(), states_.begin() + std::min<size_t>(states_.size(), 2));
    stacks_.resize(body.output_size() - 1 - states_.size());
  }

  absl::Status Iterate(int64_t iteration, Course& course) {
    Graph& graph = importer_.graph();
    const std::string prefix = absl::StrCat(node_.name, "/", iteration, "/");
    std::vector<Meaning> operands = {AddInt(graph, absl::StrCat(prefix, "iteration"), iteration),
                                     AddBool(graph, absl::StrCat(prefix, "condition"), true)};
    operands.insert(operands.end(), states_.begin(), states_.end());
    ASSIGN_OR_RETURN(std::vector<Meaning> results, importer_.ImportBody(body_, prefix, std::move(operands)));
    active_.push_back(course.active);
    for (size_t k = 0; k < states_.size(); ++k) {
      Meaning& state = results[1 + k];
      if (course.active) {
        ASSIGN_OR_RETURN(
            state, Choose(importer_, absl::StrCat(prefix, "state", k), course.active, state, states_[k]));
      }
      states_[k] = std::move(state);
    }
    for (size_t k = 0; k < stacks_.size(); ++k)
      stacks_[k].push_back(std::move(results[1 + states_.size() + k]));
    if (!course.has_condition) return absl::OkStatus();
    return AddCondition(results[0], absl::StrCat(prefix, "active"),
                        absl::StrCat("condition after iteration ", iteration), importer_, course);
  }

  absl::StatusOr<std::vector<Meaning>> Finish() {
    std::vector<Meaning> results = std::move(states_);
    Value* count = nullptr;
    if (!stacks_.empty()) {
      ASSIGN_OR_RETURN(count, Iterations());
    }
    for (const std::vector<Meaning>& stack : stacks_) {
      const onnx::ValueInfoProto& declared = body_.output(static_cast<int>(1 + results.size()));
      ASSIGN_OR_RETURN(
          Meaning stacked,
          StackResults(importer_, absl::StrCat(node_.name, "/", declared.name()), stack, declared, 0));
      if (auto* value = std::get_if<Value*>(&stacked); value && count) {
        RETURN_IF_ERROR(importer_.Count(*value, 0, count));
      }
      results.push_back(std::move(stacked));
    }
    return results;
  }

 private:
  // How many iterations counted, if only the run knows; else null. They are the first: one that does not ends
  // the loop.
  absl::StatusOr<Value*> Iterations() {
    Value* count = nullptr;
    int64_t certain = 0;
    const std::string name = absl::StrCat(node_.name, "/iterations");
    for (Value* active : active_) {
      if (!active) {
        ++certain;
        continue;
      }
      NodeSpec cast{.op = "Cast", .name = name, .inputs = {active}};
      cast.attributes.Set("to", static_cast<int64_t>(DType::kInt64));
      ASSIGN_OR_RETURN(const std::vector<Value*> one, importer_.Emit(std::move(cast)));
      if (!count) count = AddInt(importer_.graph(), name, certain);
      ASSIGN_OR_RETURN(const std::vector<Value*> sum,
                       importer_.Emit({.op = "Add", .name = name, .inputs = {count, one[0]}}));
      count = sum[0];
    }
    return count;
  }

  const InPlaceNode& node_;
  const onnx::GraphProto& body_;
  InPlaceImporter& importer_;
  std::vector<Meaning> states_;
  std::vector<std::vector<Meaning>> stacks_;
  std::vector<Value*> active_;  // by iteration: Course::active before it
};

absl::StatusOr<std::vector<Meaning>> ImportLoop(const InPlaceNode& node, InPlaceImporter& importer) {
  ASSIGN_OR_RETURN(Course course, ReadCourse(node, importer));
  ASSIGN_OR_RETURN(const onnx::GraphProto* body, node.Body("body"));
  const int states = std::max(0, static_cast<int>(node.operands.size()) - 2);
  if (body->input_size() != 2 + states || body->output_size() < 1 + states ||
      body->output_size() - 1 < node.outputs) {
    return absl::InvalidArgumentError(absl::StrCat("carries ", Counted(states, "value", "values"),
                                                   " and has ", node.outputs, " results, but its body has ",
                                                   Counted(body->input_size(), "input", "inputs"), " and ",
                                                   Counted(body->output_size(), "output", "outputs")));
  }
  Unrolling unrolling(node, *body, importer);
  for (int64_t i = 0; course.GoesOn(i); ++i) RETURN_IF_ERROR(unrolling.Iterate(i, course));
  return unrolling.Finish();
}

constexpr InPlaceOp kOps[] = {{"If", ImportIf}, {"Loop", ImportLoop}};

}  // namespace

absl::Span<const InPlaceOp> ControlFlowOps() { return kOps; }

}  // namespace pipec
