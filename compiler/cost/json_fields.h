// The fields of a JSON object that a user wrote, with faults in words: where ("$.hosts[0].name"), what is there,
// what was wanted.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipec {

// The document. InvalidArgument with line and column if it is no JSON, with the field if an object has one twice, and
// for a nesting that no file of ours has.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text);

// Whether a terminal would take a part of the text for a command or a new line.
bool HasControlCharacters(absl::string_view utf8);

class JsonFields {
 public:
  // `path`: of `object`, "$" for the document. InvalidArgument if it is no object, or has a field that is not
  // `known`: then with the nearest that is. `object` must outlive this.
  static absl::StatusOr<JsonFields> Open(const nlohmann::json& object, std::string path,
                                         const std::vector<absl::string_view>& known);

  const std::string& path() const { return path_; }
  bool Has(absl::string_view field) const { return object_->contains(std::string(field)); }
  // InvalidArgument if the field is missing, of another type or out of range (both ends belong to it).
  absl::StatusOr<double> Number(absl::string_view field, double least, double most) const;
  absl::StatusOr<int64_t> Whole(absl::string_view field, int64_t least, int64_t most) const;
  absl::StatusOr<std::string> Text(absl::string_view field) const;  // not empty
  absl::StatusOr<JsonFields> Object(absl::string_view field,
                                    const std::vector<absl::string_view>& known) const;
  absl::StatusOr<const nlohmann::json*> List(absl::string_view field) const;  // not empty
  absl::StatusOr<const nlohmann::json*> Pair(absl::string_view field) const;  // a list of two
  std::string PathOf(absl::string_view field) const;
  // "PATH.FIELD is VALUE, WHY".
  absl::Status Wrong(absl::string_view field, absl::string_view why) const;

 private:
  JsonFields(const nlohmann::json& object, std::string path) : object_(&object), path_(std::move(path)) {}
  absl::StatusOr<const nlohmann::json*> Get(absl::string_view field) const;

  const nlohmann::json* object_;
  std::string path_;
};

}  // namespace pipec
