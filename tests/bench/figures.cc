#include "tests/bench/figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace pipec::bench {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void PrintRatios(const std::string& name, std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  // Ranks n/2 -+ sqrt(n) of the sorted values.
  const int n = static_cast<int>(ratios.size());
  const int reach = std::max(1, static_cast<int>(std::ceil(0.98 * std::sqrt(n))));
  std::printf("%s_low %.3f ratio\n", name.c_str(), ratios[std::max(0, n / 2 - reach)]);
  std::printf("%s_high %.3f ratio\n", name.c_str(), ratios[std::min(n - 1, n / 2 + reach)]);
  std::printf("%s %.3f ratio\n", name.c_str(), Median(ratios));
  std::fflush(stdout);
}

void PrintOps(const std::string& title, const std::vector<std::pair<std::string, OpSeconds>>& sides) {
  OpSeconds longest;
  for (const auto& [side, ops] : sides) {
    for (const auto& [op, seconds] : ops) longest[op] = std::max(longest[op], seconds);
  }
  std::vector<std::pair<double, std::string>> rows;
  size_t width = title.size();
  for (const auto& [op, seconds] : longest) {
    rows.emplace_back(seconds, op);
    width = std::max(width, op.size());
  }
  std::sort(rows.rbegin(), rows.rend());
  const int names = static_cast<int>(width);
  std::printf("%-*s", names, title.c_str());
  for (const auto& [side, ops] : sides) std::printf(" %11s", side.c_str());
  for (const auto& row : rows) {
    std::printf("\n%-*s", names, row.second.c_str());
    for (const auto& [side, ops] : sides) {
      const auto it = ops.find(row.second);
      if (it == ops.end() || it->second == 0) {
        std::printf(" %11s", "-");
      } else {
        std::printf(" %11.3f", it->second * 1e3);
      }
    }
  }
  std::printf("\n\n");
  std::fflush(stdout);
}

}  // namespace pipec::bench
