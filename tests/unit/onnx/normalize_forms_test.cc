// Pairs of an old form and the newest (tests/data/opsets/forms.txt): the importer makes the same nodes of
// both. tests/reference/opsets/check_forms.py has onnxruntime compute both.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/onnx/normalize/rules.h"
#include "compiler/onnx/read/attribute_proto.h"
#include "compiler/onnx/schema/function_body.h"
#include "passes/evaluate.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

struct Form {
  int opset = 0;
  std::string graph;
};

struct Pair {
  std::string name;
  Form before, after;
};

Form ParseForm(absl::string_view line) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(line, absl::MaxSplits(": ", 1));
  Form form{.graph = std::string(parts.second)};
  EXPECT_TRUE(absl::SimpleAtoi(parts.first, &form.opset)) << line;
  return form;
}

std::vector<Pair> ReadPairs() {
  std::ifstream file(PIPEC_SOURCE_DIR "/tests/data/opsets/forms.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  EXPECT_EQ(lines.size() % 3, 0);
  std::vector<Pair> pairs;
  for (int i = 0; i + 2 < lines.size(); i += 3) {
    pairs.push_back({lines[i], ParseForm(lines[i + 1]), ParseForm(lines[i + 2])});
  }
  return pairs;
}

// The nodes and what they are given, without names: an attribute that has its default and one left out are
// the same, and so are a constant and a parameter.
std::string Describe(const Module& module) {
  absl::flat_hash_map<const Value*, std::string> words;
  for (const Value* value : module.graph.Values()) {
    if (value->producer()) continue;
    words[value] = value->kind() == ValueKind::kInput
                       ? value->name()
                       : absl::StrCat(ToString(value->type), " ", absl::BytesToHexString(*ReadData(*value)));
  }
  std::string text;
  int number = 0;
  for (const Node* node = module.graph.first_node(); node; node = node->next()) {
    for (const Value* output : node->outputs()) {
      words[output] = absl::StrCat("%", number++);
      absl::StrAppend(&text, words[output], " ", ToString(output->type), " ");
    }
    absl::StrAppend(&text, "= ", node->op());
    absl::flat_hash_map<std::string, Attribute> attributes(node->attributes.begin(), node->attributes.end());
    EXPECT_EQ(AddSchemaDefaults(node->op(), node->domain(), attributes), absl::OkStatus());
    for (const auto& [name, value] : std::map<std::string, Attribute>(attributes.begin(), attributes.end())) {
      absl::StrAppend(&text, " {", ToProto(name, value).ShortDebugString(), "}");
    }
    for (const Value* input : node->inputs()) absl::StrAppend(&text, " (", input ? words[input] : "", ")");
    absl::StrAppend(&text, "\n");
  }
  for (const Value* output : module.graph.outputs) absl::StrAppend(&text, words[output], " ");
  return text;
}

TEST(NormalizeForms, BecomeTheNewest) {
  const std::vector<Pair> pairs = ReadPairs();
  EXPECT_GT(pairs.size(), 40);
  for (const Pair& pair : pairs) {
    SCOPED_TRACE(pair.name);
    const std::string before =
        Describe(*Import(Text(pair.before.graph, pair.before.opset), {.evaluate = Evaluate}));
    EXPECT_EQ(before, Describe(*Import(Text(pair.after.graph, pair.after.opset), {.evaluate = Evaluate})));
    EXPECT_NE(before, "");
  }
}

// Of the rules that matter from opset 7 on.
TEST(NormalizeForms, EveryRuleHasAPair) {
  const std::vector<Pair> pairs = ReadPairs();
  std::map<std::string, int> begins;  // a rule's op -> where its rule before this one ends
  for (const NormalizeRule& rule : NormalizeRules()) {
    int& begin = begins[std::string(rule.op)];
    if (rule.until > 7) {
      EXPECT_TRUE(std::any_of(pairs.begin(), pairs.end(),
                              [&](const Pair& pair) {
                                const std::string& graph = pair.before.graph;
                                return pair.before.opset >= begin && pair.before.opset < rule.until &&
                                       (absl::StrContains(graph, absl::StrCat(" ", rule.op, "(")) ||
                                        absl::StrContains(graph, absl::StrCat(" ", rule.op, "<")));
                              }))
          << rule.op << " until opset " << rule.until;
    }
    begin = rule.until;
  }
}

}  // namespace
}  // namespace pipec
