// A file of tokens: sample i is tokens [iT, iT+T), its labels are [iT+1, iT+T+1).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/data_source.h"

namespace pipec {

// The inputs must be one int64 [batch, sequence] input, labels of the same type, or both. Labels of the last
// sample need one token after it.
absl::StatusOr<std::unique_ptr<DataSource>> OpenTokens(const std::string& path,
                                                       const std::vector<DataInput>& inputs,
                                                       TokenType tokens);

}  // namespace pipec
