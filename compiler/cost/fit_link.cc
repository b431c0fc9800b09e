#include "compiler/cost/fit_link.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "compiler/cost/non_negative_fit.h"

namespace pipec {
namespace {

constexpr double kMisfit = 0.1;
// Seconds below which errors count as absolute.
constexpr double kGrain = 1e-6;
constexpr int kLeastSizes = 2;  // of a piece

struct Size {
  double bytes = 0, seconds = 0;  // mean
};

std::vector<Size> MeansBySize(const std::vector<MeasuredMessage>& messages) {
  std::map<double, std::pair<double, double>> sums;  // seconds, runs
  for (const MeasuredMessage& message : messages) {
    auto& [seconds, runs] = sums[message.bytes];
    seconds += message.seconds * message.runs;
    runs += message.runs;
  }
  std::vector<Size> sizes;
  for (const auto& [bytes, sum] : sums) sizes.push_back({bytes, sum.first / sum.second});
  return sizes;
}

double Bandwidth(double seconds_a_byte) {
  return seconds_a_byte > 0 ? 1 / seconds_a_byte : std::numeric_limits<double>::infinity();
}

struct FittedLink {
  Link link;
  double misfit = 0;  // root mean square of relative errors
};

FittedLink FitPieces(const std::vector<Size>& sizes, double knee) {
  std::vector<Observation> observations;
  for (const Size& size : sizes) {
    observations.push_back({{1, std::min(size.bytes, knee), std::max(size.bytes - knee, 0.0)}, size.seconds});
  }
  const FitTerms fit = FitNonNegative(observations, kGrain);
  double squares = 0;
  for (const Observation& o : observations) {
    const double error = (SumOfTerms(fit, o.terms) - o.value) / std::max(o.value, kGrain);
    squares += error * error;
  }
  FittedLink fitted{{fit[0], Bandwidth(fit[1]), Origin::kFitted}, std::sqrt(squares / sizes.size())};
  if (std::isfinite(knee)) {
    fitted.link.knee_bytes = knee;
    fitted.link.bytes_per_second_beyond = Bandwidth(fit[2]);
  }
  return fitted;
}

}  // namespace

Link FitLink(const std::vector<MeasuredMessage>& messages, const Link& modelled) {
  const std::vector<Size> sizes = MeansBySize(messages);
  if (sizes.empty()) return modelled;
  if (sizes.size() == 1) {
    const auto [bytes, seconds] = sizes[0];
    const double a_byte = bytes > 0 ? std::min(1 / modelled.bytes_per_second, seconds / bytes) : 0;
    return {seconds - a_byte * bytes, Bandwidth(a_byte), Origin::kFitted};
  }
  const FittedLink line = FitPieces(sizes, std::numeric_limits<double>::infinity());
  FittedLink best = line;
  if (line.misfit <= kMisfit) return line.link;
  for (size_t k = kLeastSizes - 1; k + kLeastSizes < sizes.size(); ++k) {
    const FittedLink pieces = FitPieces(sizes, sizes[k].bytes);
    if (pieces.misfit < best.misfit) best = pieces;
  }
  return best.link;
}

}  // namespace pipec
