// Whether pipec deals with everything that has changed, since opset 7, between the forms that ONNX's ops had
// and the newest, by what the onnx library says: a new release of it fails here until somebody has looked at
// what it changed.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/onnx/normalize/rules.h"
#include "compiler/onnx/schema/function_body.h"
#include "onnx/defs/schema.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

using onnx::OpSchema;

constexpr int kOldestOpset = 7;
// What kDealtWith says holds up to here. Of an opset beyond, read how the text of each op changed too: some
// changes of meaning leave attributes and operands as they were.
constexpr int kReviewedOpset = 27;

enum class How {
  kSame,   // a node of the old form is a node of the newest that means the same
  kRule,   // normalised
  kWords,  // another name for the same thing
  kBody,   // an op with a body: both forms are read where it is unrolled
};

struct DealtWith {
  const char* ops;
  const char* difference;
  How how;
  const char* reason;
};

constexpr char kReductions[] =
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
    "ReduceSumSquare";
constexpr char kOffByDefault[] = "its default is what the op did before";
constexpr char kMayBeAbsent[] =
    "an operand that was always given may now be absent, or one more may be given";
constexpr char kFloat8[] = "only for float8 results, which came with the attribute";

// Differences in words only, which no schema shows, were these. Transposed convolutions put an odd pixel on
// the other side since opset 11; onnxruntime always did (tests/data/opsets). Float8 results of infinities
// follow the table of opset 24, which corrected that of 19. Negative axes came with opset 11, broadcasting of
// Max, Min, Mean and Sum with 8. Everything else made clear what had been meant.
constexpr DealtWith kDealtWith[] = {
    {"ArgMax ArgMin", "+attribute select_last_index", How::kSame, kOffByDefault},
    {"Attention", "+input nonpad_kv_seqlen", How::kSame, kMayBeAbsent},
    // Windows that would begin in the padding at the end do not count since opset 22 (of 19 for averages);
    // before, the words left it open, and onnxruntime leaves them out at every opset.
    {"AveragePool LpPool MaxPool", "+attribute ceil_mode", How::kSame, kOffByDefault},
    {"AveragePool LpPool MaxPool", "+attribute dilations", How::kSame, kOffByDefault},
    {"BatchNormalization", "-attribute spatial", How::kRule, ""},
    {"BatchNormalization", "+attribute training_mode", How::kRule, ""},
    {"BatchNormalization", "-output saved_mean", How::kRule, ""},
    {"BatchNormalization", "-output saved_var", How::kRule, ""},
    {"BatchNormalization", "input mean is input_mean", How::kWords, ""},
    {"BatchNormalization", "input var is input_var", How::kWords, ""},
    {"BatchNormalization", "output mean is running_mean", How::kWords, ""},
    {"BatchNormalization", "output var is running_var", How::kWords, ""},
    {"Cast CastLike QuantizeLinear", "+attribute saturate", How::kSame, kFloat8},
    {"Cast CastLike", "+attribute round_mode", How::kSame, "only for float8e8m0 results, which came with it"},
    {"Clip", "-attribute min", How::kRule, ""},
    {"Clip", "-attribute max", How::kRule, ""},
    {"Clip", "+input min", How::kRule, ""},
    {"Clip", "+input max", How::kRule, ""},
    {"Constant", "+attribute sparse_value", How::kSame, "another way to give the value"},
    {"Constant", "+attribute value_float", How::kSame, "another way to give the value"},
    {"Constant", "+attribute value_floats", How::kSame, "another way to give the value"},
    {"Constant", "+attribute value_int", How::kSame, "another way to give the value"},
    {"Constant", "+attribute value_ints", How::kSame, "another way to give the value"},
    {"Constant", "+attribute value_string", How::kSame, "another way to give the value"},
    {"Constant", "+attribute value_strings", How::kSame, "another way to give the value"},
    {"Constant", "attribute value may be absent", How::kSame, "another way to give the value"},
    {"DFT", "-attribute axis", How::kRule, ""},
    {"DFT", "+input axis", How::kRule, ""},
    {"DepthToSpace", "+attribute mode", How::kSame, "its default, DCR, is what the op did before"},
    {"DequantizeLinear QuantizeLinear", "+attribute axis", How::kSame,
     "scales were scalars, which have no axis"},
    {"DequantizeLinear QuantizeLinear", "+attribute block_size", How::kSame, kOffByDefault},
    {"DequantizeLinear QuantizeLinear", "+attribute output_dtype", How::kSame, kOffByDefault},
    {"QuantizeLinear", "+attribute precision", How::kSame, "its default is the scale's type, x's own before"},
    {"Dropout", "-attribute ratio", How::kRule, ""},
    {"Dropout", "+input ratio", How::kRule, ""},
    {"Dropout", "+attribute seed", How::kSame, kOffByDefault},
    {"Dropout", "+input training_mode", How::kSame,
     "left to whoever ran it, as it still is without the operand"},
    {"Dropout", "output mask takes fewer types", How::kRule, ""},
    {"Erf", "input input takes fewer types", How::kSame, "integers had no definition; refused by type"},
    {"Erf", "output output takes fewer types", How::kSame, "integers had no definition; refused by type"},
    {"GRU LSTM RNN", "+attribute layout", How::kSame, kOffByDefault},
    {"GatherND", "+attribute batch_dims", How::kSame, kOffByDefault},
    {"Gemm", "input C may be absent", How::kSame, kMayBeAbsent},
    {"GridSample", "attribute mode has another default", How::kRule, ""},
    {"GroupNormalization", "+attribute stash_type", How::kSame,
     "its default, float32, is what the op did before"},
    {"GroupNormalization", "deprecated before", How::kRule, ""},
    {"Hardmax LogSoftmax Softmax", "attribute axis has another default", How::kRule, ""},
    {"MaxPool", "+attribute storage_order", How::kSame, "only for the indices, which came with it"},
    {"MaxPool", "+output Indices", How::kSame, kMayBeAbsent},
    {"OptionalHasElement", "input input may be absent", How::kSame, kMayBeAbsent},
    {"Pad", "-attribute pads", How::kRule, ""},
    {"Pad", "-attribute value", How::kRule, ""},
    {"Pad", "+input pads", How::kRule, ""},
    {"Pad", "+input constant_value", How::kRule, ""},
    {"Pad", "+input axes", How::kSame, kMayBeAbsent},
    {"Range", "+attribute stash_type", How::kSame, "only for float16 and bfloat16, which came with it"},
    {kReductions, "-attribute axes", How::kRule, ""},
    {kReductions, "+input axes", How::kRule, ""},
    {kReductions, "+attribute noop_with_empty_axes", How::kSame, kOffByDefault},
    {"Reshape", "+attribute allowzero", How::kSame, kOffByDefault},
    {"Resize", "+attribute antialias", How::kSame, kOffByDefault},
    {"Resize", "+attribute axes", How::kSame, kOffByDefault},
    {"Resize", "+attribute keep_aspect_ratio_policy", How::kSame, kOffByDefault},
    {"Resize", "+attribute coordinate_transformation_mode", How::kRule, ""},
    {"Resize", "+attribute nearest_mode", How::kRule, ""},
    {"Resize", "+attribute cubic_coeff_a", How::kSame, "only for mode cubic, which came with it"},
    {"Resize", "+attribute exclude_outside", How::kSame, "only for mode cubic, which came with it"},
    {"Resize", "+attribute extrapolation_value", How::kSame,
     "only for tf_crop_and_resize, which came with it"},
    {"Resize", "input scales is roi", How::kRule, ""},
    {"Resize", "+input scales", How::kRule, ""},
    {"Resize", "+input sizes", How::kSame, kMayBeAbsent},
    {"Resize", "input roi may be absent", How::kRule, "absent ones were empty"},
    {"Resize", "input scales may be absent", How::kRule, "absent ones were empty"},
    {"RoiAlign", "+attribute coordinate_transformation_mode", How::kRule, ""},
    {"Scan", "-attribute directions", How::kBody, ""},
    {"Scan", "+attribute scan_input_axes", How::kBody, ""},
    {"Scan", "+attribute scan_input_directions", How::kBody, ""},
    {"Scan", "+attribute scan_output_axes", How::kBody, ""},
    {"Scan", "+attribute scan_output_directions", How::kBody, ""},
    {"Scan", "input sequence_lens is initial_state_and_scan_inputs", How::kBody, ""},
    {"Scan", "-input initial_state_and_scan_inputs", How::kBody, ""},
    {"Scatter Upsample", "deprecated", How::kRule, ""},
    {"ScatterElements ScatterND", "+attribute reduction", How::kSame, kOffByDefault},
    {"Shape", "+attribute start", How::kSame, kOffByDefault},
    {"Shape", "+attribute end", How::kSame, kOffByDefault},
    {"Slice", "-attribute axes", How::kRule, ""},
    {"Slice", "-attribute ends", How::kRule, ""},
    {"Slice", "-attribute starts", How::kRule, ""},
    {"Slice", "+input axes", How::kRule, ""},
    {"Slice", "+input ends", How::kRule, ""},
    {"Slice", "+input starts", How::kRule, ""},
    {"Slice", "+input steps", How::kSame, kMayBeAbsent},
    {"Split", "-attribute split", How::kRule, ""},
    {"Split", "+input split", How::kRule, ""},
    {"Split", "+attribute num_outputs", How::kRule, ""},
    {"Squeeze Unsqueeze", "-attribute axes", How::kRule, ""},
    {"Squeeze Unsqueeze", "+input axes", How::kRule, ""},
    {"TopK", "-attribute k", How::kRule, ""},
    {"TopK", "+input K", How::kRule, ""},
    {"TopK", "+attribute largest", How::kSame, kOffByDefault},
    {"TopK", "+attribute sorted", How::kSame, kOffByDefault},
    {"Upsample", "-attribute scales", How::kRule, ""},
    {"Upsample", "+input scales", How::kRule, ""},
};

std::string DefaultOf(const OpSchema::Attribute& attribute) {
  return attribute.default_value.SerializeAsString();
}

// Operands or results, by their places.
void CompareParameters(absl::string_view what, const std::vector<OpSchema::FormalParameter>& before,
                       const std::vector<OpSchema::FormalParameter>& after,
                       std::vector<std::string>& differences) {
  for (size_t k = 0; k < std::max(before.size(), after.size()); ++k) {
    if (k >= before.size()) {
      differences.push_back(absl::StrCat("+", what, " ", after[k].GetName()));
    } else if (k >= after.size()) {
      differences.push_back(absl::StrCat("-", what, " ", before[k].GetName()));
    } else if (before[k].GetName() != after[k].GetName()) {
      differences.push_back(absl::StrCat(what, " ", before[k].GetName(), " is ", after[k].GetName()));
    } else {
      const std::string subject = absl::StrCat(what, " ", after[k].GetName());
      if (before[k].GetOption() != after[k].GetOption()) {
        differences.push_back(subject + (after[k].GetOption() == OpSchema::Optional
                                             ? " may be absent"
                                             : " is of another number"));
      }
      const auto& types = after[k].GetTypes();
      if (std::any_of(before[k].GetTypes().begin(), before[k].GetTypes().end(),
                      [&](onnx::DataType type) { return !types.contains(type); })) {
        differences.push_back(subject + " takes fewer types");
      }
    }
  }
}

std::vector<std::string> Differences(const OpSchema& before, const OpSchema& after) {
  std::vector<std::string> differences;
  for (const auto& [name, attribute] : before.attributes()) {
    auto it = after.attributes().find(name);
    if (it == after.attributes().end()) {
      differences.push_back("-attribute " + name);
      continue;
    }
    const std::string subject = "attribute " + name;
    if (it->second.type != attribute.type) differences.push_back(subject + " has another type");
    if (it->second.required != attribute.required) {
      differences.push_back(subject + (it->second.required ? " must be given" : " may be absent"));
    }
    if (DefaultOf(it->second) != DefaultOf(attribute)) {
      differences.push_back(subject + " has another default");
    }
  }
  for (const auto& [name, attribute] : after.attributes()) {
    if (!before.attributes().contains(name)) differences.push_back("+attribute " + name);
  }
  CompareParameters("input", before.inputs(), after.inputs(), differences);
  CompareParameters("output", before.outputs(), after.outputs(), differences);
  if (before.min_output() != after.min_output()) differences.push_back("another number of outputs");
  if (after.deprecated() && !before.deprecated()) differences.push_back("deprecated");
  if (before.deprecated() && !after.deprecated()) differences.push_back("deprecated before");
  return differences;
}

// By op, the versions of its schema by rising opset.
const std::map<std::string, std::map<int, OpSchema>>& Histories() {
  static const auto* const kHistories = [] {
    auto* histories = new std::map<std::string, std::map<int, OpSchema>>();
    for (const OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
      if (schema.domain() != onnx::ONNX_DOMAIN) continue;
      (*histories)[schema.Name()].emplace(schema.since_version(), schema);
    }
    return histories;
  }();
  return *kHistories;
}

bool HasRule(const std::string& op, int version) {
  const auto rules = NormalizeRules();
  return std::any_of(rules.begin(), rules.end(),
                     [&](const NormalizeRule& rule) { return rule.op == op && version < rule.until; });
}

TEST(OpsetHistory, EveryDifferenceIsDealtWith) {
  std::map<std::pair<std::string, std::string>, const DealtWith*> rows;
  for (const DealtWith& row : kDealtWith) {
    for (absl::string_view op : absl::StrSplit(row.ops, ' ')) {
      EXPECT_TRUE(rows.emplace(std::pair(std::string(op), row.difference), &row).second) << row.difference;
    }
  }
  std::set<std::pair<std::string, std::string>> met;
  for (const auto& [op, versions] : Histories()) {
    const OpSchema& newest = versions.rbegin()->second;
    for (auto it = versions.begin(); std::next(it) != versions.end(); ++it) {
      if (std::next(it)->first <= kOldestOpset) continue;  // no longer in force at opset 7
      for (const std::string& difference : Differences(it->second, newest)) {
        SCOPED_TRACE(absl::StrCat(op, " ", it->first, " against ", newest.since_version(), ": ", difference));
        auto row = rows.find({op, difference});
        if (row == rows.end()) {
          ADD_FAILURE() << "nobody has dealt with this difference";
          continue;
        }
        met.insert(row->first);
        if (row->second->how == How::kRule) {
          EXPECT_TRUE(HasRule(op, it->first)) << "the rule is missing";
        }
      }
    }
  }
  for (const auto& [key, row] : rows) {
    EXPECT_TRUE(met.contains(key)) << key.first << ": there is no difference '" << key.second << "'";
  }
}

TEST(OpsetHistory, ReviewedAsFarAsTheLibraryKnows) {
  EXPECT_EQ(NewestOpset(""), kReviewedOpset)
      << "see which ops changed in the newer opset, in words too, then raise kReviewedOpset";
}

TEST(OpsetHistory, RulesEndWhereTheOpChanged) {
  const std::map<std::string, std::map<int, OpSchema>>& histories = Histories();
  for (const NormalizeRule& rule : NormalizeRules()) {
    auto it = histories.find(std::string(rule.op));
    ASSERT_NE(it, histories.end()) << rule.op;
    EXPECT_TRUE(rule.until > kReviewedOpset || it->second.contains(rule.until))
        << rule.op << " " << rule.until;
  }
}

}  // namespace
}  // namespace pipec
