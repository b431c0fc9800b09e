#include "compiler/cost/json_fields.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using nlohmann::json;

// Of a value, in a message.
constexpr size_t kMostShown = 40;
// Deeper than any file of ours, and not so deep that what walks it fails.
constexpr int kMostDepth = 32;

std::string Shown(const json& value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  if (text.size() > kMostShown) text = absl::StrCat(text.substr(0, kMostShown), "...");
  return text;
}

// How many letters to insert, remove or replace (Levenshtein); none where only the end is missing.
int Distance(absl::string_view a, absl::string_view b) {
  if (absl::StartsWith(a, b) || absl::StartsWith(b, a)) return 0;
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const int replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

bool HasControlCharacters(absl::string_view utf8) {
  for (size_t k = 0; k < utf8.size(); ++k) {
    const auto byte = static_cast<unsigned char>(utf8[k]);
    if (byte < 0x20 || byte == 0x7f) return true;
    // U+0080 to U+009F.
    if (byte == 0xc2 && k + 1 < utf8.size() && static_cast<unsigned char>(utf8[k + 1]) < 0xa0) return true;
  }
  return false;
}

absl::StatusOr<json> ParseJson(absl::string_view text) {
  std::vector<std::set<std::string>> objects;
  std::string twice;
  bool deep = false;
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    deep |= depth > kMostDepth;
    if (event == json::parse_event_t::object_start) objects.emplace_back();
    if (event == json::parse_event_t::object_end && !objects.empty()) objects.pop_back();
    if (event == json::parse_event_t::key && !objects.empty()) {
      const std::string key = parsed.get<std::string>();
      if (!objects.back().insert(key).second && twice.empty()) twice = key;
    }
    return true;
  };
  try {
    json document = json::parse(text.begin(), text.end(), check);
    if (deep) return absl::InvalidArgumentError("is nested too deeply");
    if (twice.empty()) return document;
  } catch (const json::exception& error) {
    // "[json.exception...] parse error at line 3, column 5: ..."
    absl::string_view what = error.what();
    if (const size_t end = what.find("] "); end != absl::string_view::npos) what.remove_prefix(end + 2);
    return absl::InvalidArgumentError(absl::StrCat("is no JSON: ", what));
  }
  return absl::InvalidArgumentError(absl::StrCat("has the field '", twice, "' twice in one object"));
}

absl::StatusOr<JsonFields> JsonFields::Open(const json& object, std::string path,
                                            const std::vector<absl::string_view>& known) {
  if (!object.is_object())
    return absl::InvalidArgumentError(absl::StrCat(path, " is ", Shown(object), ", not an object"));
  for (const auto& [field, value] : object.items()) {
    if (std::find(known.begin(), known.end(), field) != known.end()) continue;
    const auto nearest = std::min_element(
        known.begin(), known.end(),
        [&](absl::string_view a, absl::string_view b) { return Distance(a, field) < Distance(b, field); });
    return absl::InvalidArgumentError(absl::StrCat(path, " has the unknown field ", Shown(field),
                                                   "; the nearest is ", *nearest, ", known are ",
                                                   absl::StrJoin(known, ", ")));
  }
  return JsonFields(object, std::move(path));
}

std::string JsonFields::PathOf(absl::string_view field) const { return absl::StrCat(path_, ".", field); }

absl::Status JsonFields::Wrong(absl::string_view field, absl::string_view why) const {
  return absl::InvalidArgumentError(
      absl::StrCat(PathOf(field), " is ", Shown(object_->at(std::string(field))), ", ", why));
}

absl::StatusOr<const json*> JsonFields::Get(absl::string_view field) const {
  const auto it = object_->find(std::string(field));
  if (it != object_->end()) return &*it;
  return absl::InvalidArgumentError(absl::StrCat(PathOf(field), " is missing"));
}

absl::StatusOr<double> JsonFields::Number(absl::string_view field, double least, double most) const {
  ASSIGN_OR_RETURN(const json* value, Get(field));
  if (!value->is_number()) return Wrong(field, "not a number");
  const double number = value->get<double>();
  if (number >= least && number <= most) return number;
  return Wrong(field, absl::StrCat("not between ", least, " and ", most));
}

absl::StatusOr<int64_t> JsonFields::Whole(absl::string_view field, int64_t least, int64_t most) const {
  ASSIGN_OR_RETURN(const double number, Number(field, static_cast<double>(least), static_cast<double>(most)));
  const int64_t whole = static_cast<int64_t>(number);
  if (static_cast<double>(whole) != number) return Wrong(field, "not a whole number");
  return whole;
}

absl::StatusOr<std::string> JsonFields::Text(absl::string_view field) const {
  ASSIGN_OR_RETURN(const json* value, Get(field));
  if (!value->is_string()) return Wrong(field, "not a text");
  std::string text = value->get<std::string>();
  if (text.empty()) return Wrong(field, "which is empty");
  if (HasControlCharacters(text)) return Wrong(field, "which has control characters");
  return text;
}

absl::StatusOr<JsonFields> JsonFields::Object(absl::string_view field,
                                              const std::vector<absl::string_view>& known) const {
  ASSIGN_OR_RETURN(const json* value, Get(field));
  return Open(*value, PathOf(field), known);
}

absl::StatusOr<const json*> JsonFields::List(absl::string_view field) const {
  ASSIGN_OR_RETURN(const json* value, Get(field));
  if (!value->is_array()) return Wrong(field, "not a list");
  if (value->empty()) return Wrong(field, "which is empty");
  return value;
}

absl::StatusOr<const json*> JsonFields::Pair(absl::string_view field) const {
  ASSIGN_OR_RETURN(const json* value, List(field));
  if (value->size() != 2) return Wrong(field, "not a list of two");
  return value;
}

}  // namespace pipec
