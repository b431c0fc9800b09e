#include "tests/bench/traced_run.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/bench/figures.h"

namespace pipec::bench {
namespace {

struct Span {
  double begin = 1e300, end = 0;
};

}  // namespace

TracedRun ReadTrace(const std::string& path) {
  std::ifstream file(path);
  const nlohmann::json document = nlohmann::json::parse(file, nullptr, false);
  if (!document.is_object()) {
    std::fprintf(stderr, "%s is no trace\n", path.c_str());
    std::exit(1);
  }
  std::map<int, Span> steps;
  std::map<int, std::map<std::string, std::vector<double>>> actions;  // by stage and kind
  for (const nlohmann::json& event : document["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const std::string kind = event["cat"];
    const double begin = event["ts"].get<double>() * 1e-6, seconds = event["dur"].get<double>() * 1e-6;
    Span& step = steps[event["args"]["step"]];
    step.end = std::max(step.end, begin + seconds);
    // Who asks for the first message, or waits for it, has not begun.
    if (kind != "wait" && kind.rfind("RECV", 0) != 0) step.begin = std::min(step.begin, begin);
    if (kind == "F" || kind == "B" || kind == "I" || kind == "W")
      actions[event["args"]["stage"]][kind].push_back(seconds);
  }
  TracedRun run;
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    if (step == steps.begin() && steps.size() > 1) continue;
    run.steps.push_back(step->second.end - step->second.begin);
    if (std::next(step) != steps.end()) run.periods.push_back(std::next(step)->second.begin - step->second.begin);
    if (step != steps.begin()) run.gaps.push_back(step->second.begin - std::prev(step)->second.end);
  }
  if (run.steps.empty()) {
    std::fprintf(stderr, "%s has no step\n", path.c_str());
    std::exit(1);
  }
  for (auto& [stage, kinds] : actions) {
    auto& [forward, backward] = run.stages[stage];
    for (const auto& [kind, seconds] : kinds) (kind == "F" ? forward : backward) += Median(seconds);
  }
  return run;
}

}  // namespace pipec::bench
