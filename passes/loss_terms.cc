#include "passes/loss_terms.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "passes/evaluate.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

struct Term {
  double factor;
  Value* value;
};

// The number that a constant of one element holds.
std::optional<double> NumberOf(const Value* value) {
  if (!value || value->kind() != ValueKind::kConstant || value->type.elements() != 1) return std::nullopt;
  const absl::StatusOr<std::string> bytes = ReadData(*value);
  if (!bytes.ok()) return std::nullopt;
  if (value->type.dtype == DType::kFloat32) {
    float number;
    std::memcpy(&number, bytes->data(), sizeof(number));
    return number;
  }
  if (value->type.dtype != DType::kFloat64) return std::nullopt;
  double number;
  std::memcpy(&number, bytes->data(), sizeof(number));
  return number;
}

const Node* MeanOfClassLoss(const Value* value) {
  const Node* div = value->producer();
  if (!div || !div->Is("Div")) return nullptr;
  const Node* loss = ClassLossOf(div->input(0));
  return loss && div->input(1) == loss->output(1) ? loss : nullptr;
}

// `value` times `factor`, as far down as it is linear in scalars.
void AddTerms(Value* value, double factor, std::vector<Term>& terms) {
  value = Behind(value);
  const Node* node = value->producer();
  const bool scalars = node && std::all_of(node->inputs().begin(), node->inputs().end(),
                                           [](const Value* in) { return in && in->type.elements() == 1; });
  if (!scalars || MeanOfClassLoss(value)) return terms.push_back({factor, value});
  if (node->Is("Add") || node->Is("Sum")) {
    for (Value* in : node->inputs()) AddTerms(in, factor, terms);
    return;
  }
  if (node->Is("Neg")) return AddTerms(node->input(0), -factor, terms);
  if (node->Is("Sub")) {
    AddTerms(node->input(0), factor, terms);
    return AddTerms(node->input(1), -factor, terms);
  }
  if (node->Is("Mul") || node->Is("Div")) {
    const std::optional<double> left = NumberOf(node->input(0)), right = NumberOf(node->input(1));
    if (right && *right != 0) {
      return AddTerms(node->input(0), node->Is("Mul") ? factor * *right : factor / *right, terms);
    }
    if (left && node->Is("Mul")) return AddTerms(node->input(1), factor * *left, terms);
  }
  terms.push_back({factor, value});
}

// Whether two class losses are divided by the same weight.
bool SameWeight(const Node& a, const Node& b) {
  const bool both_ignore = a.attributes.Has("ignore_index") && b.attributes.Has("ignore_index");
  const bool neither = !a.attributes.Has("ignore_index") && !b.attributes.Has("ignore_index");
  return a.input(1) == b.input(1) && a.input(2) == b.input(2) && a.output(1)->type == b.output(1)->type &&
         (neither || (both_ignore && a.attributes.Int("ignore_index") == b.attributes.Int("ignore_index")));
}

}  // namespace

absl::StatusOr<std::vector<LossOutput>> ParseLossOutputs(absl::string_view text) {
  std::vector<LossOutput> outputs;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    LossOutput output;
    const size_t star = part.rfind('*');
    if (star != absl::string_view::npos) {
      const absl::string_view number = part.substr(star + 1);
      if (!absl::SimpleAtod(number, &output.weight) || !std::isfinite(output.weight) || output.weight == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", part, "': the weight '", number, "' is no number other than 0"));
      }
      part = part.substr(0, star);
    }
    output.name = std::string(part);
    if (output.name.empty())
      return absl::InvalidArgumentError("an output without a name; wanted NAME[*WEIGHT],...");
    for (const LossOutput& other : outputs) {
      if (other.name == output.name)
        return absl::InvalidArgumentError(absl::StrCat("output '", output.name, "' is named twice"));
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

Value* Behind(Value* value) {
  const auto is_view = [](const Node& node) {
    return node.Is("Identity") || node.Is("Reshape") || node.Is("Squeeze") || node.Is("Unsqueeze") ||
           node.Is("Flatten");
  };
  while (value->producer() && is_view(*value->producer())) value = value->producer()->input(0);
  return value;
}

const Node* ClassLossOf(const Value* sum) {
  const Node* node = sum ? sum->producer() : nullptr;
  const bool is_class_loss =
      node && sum->output_index() == 0 &&
      (node->Is("SoftmaxCrossEntropy", kPipecDomain) || node->Is("NegativeLogLikelihood", kPipecDomain)) &&
      node->attributes.String("reduction", "sum") == "sum";
  return is_class_loss ? node : nullptr;
}

bool WeightDependsOnLabels(const Node& class_loss) {
  return class_loss.input(2) || class_loss.attributes.Has("ignore_index");
}

std::vector<Node*> MeansThatIgnoreLabels(Value* loss) {
  std::vector<Term> terms;
  AddTerms(loss, 1, terms);
  std::vector<Node*> found;
  for (const Term& term : terms) {
    const Node* mean = MeanOfClassLoss(term.value);
    if (mean && mean->attributes.Has("ignore_index") && !mean->input(2))
      found.push_back(mean->output(0)->producer());
  }
  return found;
}

Value* Scaled(Graph& graph, Value* sum, double factor) {
  if (factor == 1) return sum;
  std::string bytes(sum->type.bytes(), '\0');
  if (sum->type.dtype == DType::kFloat64) {
    std::memcpy(bytes.data(), &factor, sizeof(factor));
  } else {
    const float narrow = static_cast<float>(factor);
    std::memcpy(bytes.data(), &narrow, sizeof(narrow));
  }
  Value* constant = graph.AddConstant("loss.factor", sum->type, std::move(bytes));
  return graph.AddNode({.op = "Mul", .inputs = {sum, constant}, .outputs = {sum->type}})->output(0);
}

absl::StatusOr<WeightedSum> TakeApart(Graph& graph, Value* loss) {
  std::vector<Term> terms;
  AddTerms(loss, 1, terms);
  const Node* first = MeanOfClassLoss(terms[0].value);
  for (const Term& term : terms) {
    const Node* mean = MeanOfClassLoss(term.value);
    if (!mean || !SameWeight(*mean, *first)) return WeightedSum{};
  }
  WeightedSum result{.weight = first->output(1), .class_loss = terms.size() == 1 ? first : nullptr};
  for (const Term& term : terms) {
    Value* part = Scaled(graph, MeanOfClassLoss(term.value)->output(0), term.factor);
    result.sum =
        result.sum
            ? graph.AddNode({.op = "Add", .inputs = {result.sum, part}, .outputs = {part->type}})->output(0)
            : part;
  }
  return result;
}

}  // namespace pipec
