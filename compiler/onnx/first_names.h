// A list of names in a line for the user.
#pragma once

#include <string>
#include <vector>

namespace pipec {

// "a, b, c, d, ...": the first four.
std::string FirstNames(const std::vector<std::string>& names);

}  // namespace pipec
