#include "compiler/ir/validate_at.h"

namespace pipec {

std::vector<int> ValidateAt(const Module& module) {
  std::vector<int> places;
  for (const Node* scale : module.training.gradient_scales) {
    const int place = static_cast<int>(scale->attributes.Int(kValidateAt, -1));
    if (place < 0) return {};
    places.resize(module.schedule.ranks.size());
    places[module.stages[scale->stage].rank] = place;
  }
  return places;
}

void SetValidateAt(Module& module, absl::Span<const int> places) {
  for (Node* scale : module.training.gradient_scales) {
    if (places.empty()) {
      scale->attributes.Erase(kValidateAt);
    } else {
      scale->attributes.Set(kValidateAt, int64_t{places[module.stages[scale->stage].rank]});
    }
  }
}

}  // namespace pipec
