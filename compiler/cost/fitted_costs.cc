#include "compiler/cost/fitted_costs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/base/cost_key.h"

namespace pipec {
namespace {

// Nodes that were not measured: one with so many times the flops and one with so many times the bytes beside each
// that was, taking what the scaled law of all says, and counting so much of a measured one.
constexpr double kTimesAsMuch = 4, kShare = 1e-4;
// Seconds that the clock and the loop over instructions blur.
constexpr double kGrain = 1e-6;
// How unlike another attribute makes two nodes, in factors of e of a dimension.
constexpr double kOtherAttributes = 1;

FitTerms TermsOf(const NodeCost& cost) { return {cost.bytes, cost.flops, 1}; }

// How the observations stand to the law: the geometric mean of their ratios, 1 if there are none.
double RatioTo(const FitTerms& law, absl::Span<const Observation> observations) {
  double logarithms = 0, rows = 0;
  for (const Observation& o : observations) {
    const double seconds = SumOfTerms(law, o.terms);
    if (!(seconds > 0)) continue;
    logarithms += std::log(o.value / seconds);
    ++rows;
  }
  return rows > 0 ? std::exp(logarithms / rows) : 1;
}

FitTerms LawOfClass(std::vector<Observation> observations, const FitTerms& law_of_all) {
  const double ratio = RatioTo(law_of_all, observations);
  for (size_t k = 0, measured = observations.size(); k < measured; ++k) {
    for (const int term : {0, 1}) {
      Observation more = observations[k];
      more.terms[term] *= kTimesAsMuch;
      more.value = ratio * SumOfTerms(law_of_all, more.terms);
      more.weight = kShare;
      observations.push_back(more);
    }
  }
  return FitNonNegative(observations, kGrain);
}

std::vector<double> Logarithms(absl::Span<const int64_t> dims) {
  std::vector<double> logarithms;
  for (const int64_t dim : dims) logarithms.push_back(std::log(static_cast<double>(dim + 1)));
  return logarithms;
}

// Of dimensions one by one, in factors of e.
double Distance(absl::Span<const double> a, absl::Span<const double> b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += std::abs(a[k] - b[k]);
  return sum;
}

}  // namespace

FittedCosts::FittedCosts(absl::Span<const MeasuredNode> nodes) {
  std::vector<Observation> all;
  absl::flat_hash_map<std::string, std::vector<Observation>> by_class;
  for (const MeasuredNode& node : nodes) {
    if (!(node.seconds > 0)) continue;
    CostKeyParts parts = SplitCostKey(node.key);
    all.push_back({TermsOf(node.cost), node.seconds});
    by_class[parts.op_and_dtypes].push_back(all.back());
    classes_[parts.op_and_dtypes].rows.push_back({std::move(parts.attributes), std::move(parts.ranks),
                                                  Logarithms(parts.dims), node.cost, node.seconds});
  }
  law_of_all_ = FitNonNegative(all, kGrain);
  for (auto& [name, op_class] : classes_) {
    const std::vector<Observation>& observations = by_class[name];
    op_class.law = LawOfClass(observations, law_of_all_);
    op_class.ratio = RatioTo(op_class.law, observations);
  }
}

std::optional<double> FittedCosts::Seconds(absl::string_view key, const NodeCost& cost) const {
  if (classes_.empty()) return std::nullopt;
  const CostKeyParts parts = SplitCostKey(key);
  const auto it = classes_.find(parts.op_and_dtypes);
  if (it == classes_.end()) return SumOfTerms(law_of_all_, TermsOf(cost));
  const OpClass& op_class = it->second;
  const std::vector<double> log_dims = Logarithms(parts.dims);
  double ratio = op_class.ratio, nearest = std::numeric_limits<double>::infinity();
  for (const Row& row : op_class.rows) {
    if (row.ranks != parts.ranks || row.log_dims.size() != log_dims.size()) continue;
    const double distance =
        Distance(row.log_dims, log_dims) + (row.attributes == parts.attributes ? 0 : kOtherAttributes);
    const double law = SumOfTerms(op_class.law, TermsOf(row.cost));
    if (distance >= nearest || !(law > 0)) continue;
    nearest = distance;
    ratio = row.seconds / law;
  }
  return ratio * SumOfTerms(op_class.law, TermsOf(cost));
}

}  // namespace pipec
