// Control flow whose course is known: the branch that is taken, and as many copies of a loop's body as it has
// iterations.
//
//   y = If<then_branch, else_branch>(true)      ->  the nodes of then_branch
//   s', y = Loop<body>(2, true, s)              ->  body(0, s) -> s1, y0;  body(1, s1) -> s', y1;  y = [y0,
//   y1]
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/emit_node.h"
#include "compiler/onnx/in_place.h"
#include "compiler/onnx/known_numbers.h"
#include "compiler/onnx/stack_tensors.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::StatusOr<std::vector<Meaning>> ImportIf(const InPlaceNode& node, InPlaceImporter& importer) {
  ASSIGN_OR_RETURN(const int64_t condition, KnownInt(node.operand(0), "condition"));
  ASSIGN_OR_RETURN(const onnx::GraphProto* branch, node.Body(condition ? "then_branch" : "else_branch"));
  if (branch->output_size() < node.outputs) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", node.outputs, " results, but the branch that is taken has ", branch->output_size()));
  }
  return importer.ImportBody(*branch, absl::StrCat(node.name, "/"), {});
}

// What a Loop goes through, by ONNX's table: a trip count and a condition, each of which may be absent.
struct Course {
  std::optional<int64_t> trips;
  bool has_condition = false;
  bool condition = true;

  bool GoesOn(int64_t iteration) const { return condition && (!trips || iteration < *trips); }
};

absl::StatusOr<Course> ReadCourse(const InPlaceNode& node) {
  Course course;
  if (!std::holds_alternative<Absent>(node.operand(0))) {
    ASSIGN_OR_RETURN(course.trips, KnownInt(node.operand(0), "trip count"));
  }
  course.has_condition = !std::holds_alternative<Absent>(node.operand(1));
  if (course.has_condition) {
    ASSIGN_OR_RETURN(const int64_t condition, KnownInt(node.operand(1), "condition"));
    course.condition = condition != 0;
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
    if (course.has_condition) {
      ASSIGN_OR_RETURN(const int64_t condition,
                       KnownInt(results[0], absl::StrCat("condition after iteration ", iteration)));
      course.condition = condition != 0;
    }
    for (size_t k = 0; k < states_.size(); ++k) states_[k] = std::move(results[1 + k]);
    for (size_t k = 0; k < stacks_.size(); ++k)
      stacks_[k].push_back(std::move(results[1 + states_.size() + k]));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Meaning>> Finish() {
    std::vector<Meaning> results = std::move(states_);
    for (const std::vector<Meaning>& stack : stacks_) {
      const onnx::ValueInfoProto& declared = body_.output(static_cast<int>(1 + results.size()));
      ASSIGN_OR_RETURN(
          Meaning stacked,
          StackResults(importer_, absl::StrCat(node_.name, "/", declared.name()), stack, declared, 0));
      results.push_back(std::move(stacked));
    }
    return results;
  }

 private:
  const InPlaceNode& node_;
  const onnx::GraphProto& body_;
  InPlaceImporter& importer_;
  std::vector<Meaning> states_;
  std::vector<std::vector<Meaning>> stacks_;
};

absl::StatusOr<std::vector<Meaning>> ImportLoop(const InPlaceNode& node, InPlaceImporter& importer) {
  ASSIGN_OR_RETURN(Course course, ReadCourse(node));
  ASSIGN_OR_RETURN(const onnx::GraphProto* body, node.Body("body"));
  const int states = std::max(0, static_cast<int>(node.operands.size()) - 2);
  if (body->input_size() != 2 + states || body->output_size() < 1 + states ||
      body->output_size() - 1 < node.outputs) {
    return absl::InvalidArgumentError(absl::StrCat("carries ", states, " values and has ", node.outputs,
                                                   " results, but its body has ", body->input_size(),
                                                   " inputs and ", body->output_size(), " outputs"));
  }
  Unrolling unrolling(node, *body, importer);
  for (int64_t i = 0; course.GoesOn(i); ++i) RETURN_IF_ERROR(unrolling.Iterate(i, course));
  return unrolling.Finish();
}

constexpr InPlaceOp kOps[] = {{"If", ImportIf}, {"Loop", ImportLoop}};

}  // namespace

absl::Span<const InPlaceOp> ControlFlowOps() { return kOps; }

}  // namespace pipec
