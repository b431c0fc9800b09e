// Seeded data without a file: floats are standard normal, integers uniform below the input's bound (2 if that
// is not known).
#pragma once

#include <memory>
#include <vector>

#include "runtime/data/data_source.h"

namespace pipec {

// Every value is a function of seed, input name, sample and element.
std::unique_ptr<DataSource> MakeSyntheticData(const std::vector<DataInput>& inputs, int64_t samples,
                                              uint64_t seed);

}  // namespace pipec
