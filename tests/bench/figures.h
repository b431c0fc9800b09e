// What benches print: medians of ratios with their intervals, and where time goes by op.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace pipec::bench {

double Median(std::vector<double> values);

// The lines NAME_low, NAME_high and NAME: the median and the interval that holds it with 95 %.
void PrintRatios(const std::string& name, std::vector<double> ratios);

// Seconds by op.
using OpSeconds = std::map<std::string, double>;

// A table in milliseconds, one column a side, the slowest op first.
void PrintOps(const std::string& title, const std::vector<std::pair<std::string, OpSeconds>>& sides);

}  // namespace pipec::bench
