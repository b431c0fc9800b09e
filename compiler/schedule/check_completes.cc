#include "compiler/schedule/check_completes.h"

#include <deque>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/schedule/fault.h"

namespace pipec {
namespace {

constexpr int kNobody = -1;

class Ranks {
 public:
  Ranks(const Schedule& schedule, absl::Span<const StageLink> links, bool has_messages)
      : schedule_(schedule),
        links_(links),
        has_messages_(has_messages),
        M_(schedule.shape.microbatches),
        links_into_(schedule.shape.stages()),
        links_from_(schedule.shape.stages()),
        made_(links.size() * M_),
        posted_(links.size() * M_),
        sent_(links.size() * M_),
        reached_(schedule.ranks.size(), 0) {
    for (int l = 0; l < static_cast<int>(links.size()); ++l) {
      link_of_[{links[l].from_stage, links[l].to_stage}] = l;
      links_into_[links[l].to_stage].push_back(l);
      links_from_[links[l].from_stage].push_back(l);
    }
  }

  absl::Status Run() {
    const int P = static_cast<int>(schedule_.ranks.size());
    std::vector<std::vector<int>> waiting(P);  // by the rank that is waited for
    std::deque<int> runnable;
    for (int r = 0; r < P; ++r) runnable.push_back(r);
    while (!runnable.empty()) {
      const int r = runnable.front();
      runnable.pop_front();
      const int before = reached_[r];
      int blocker = kNobody;
      while (!Over(r) && (blocker = WaitsFor(r)) == kNobody) Do(schedule_.ranks[r][reached_[r]++]);
      if (!Over(r)) waiting[blocker].push_back(r);
      if (reached_[r] == before) continue;
      runnable.insert(runnable.end(), waiting[r].begin(), waiting[r].end());
      waiting[r].clear();
    }
    std::string stuck;
    std::vector<PlaceInSchedule> places;
    for (int r = 0; r < P; ++r) {
      if (Over(r)) continue;
      places.push_back({r, reached_[r]});
      absl::StrAppend(&stuck, stuck.empty() ? "" : "; ", NameOf(schedule_, places.back()), ", for rank ",
                      WaitsFor(r));
    }
    if (places.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule ", schedule_.name, ": ranks wait for each other: ", stuck, GridAround(schedule_, places)));
  }

 private:
  bool Over(int r) const { return reached_[r] == static_cast<int>(schedule_.ranks[r].size()); }
  size_t Index(int link, int m) const { return static_cast<size_t>(link) * M_ + m; }
  // What an action sends or receives.
  size_t MessageOf(const Action& a, bool sends) const {
    return Index(link_of_.at(sends ? std::pair(a.stage, a.peer_stage) : std::pair(a.peer_stage, a.stage)),
                 a.microbatch);
  }
  bool Goes(int link, bool forward) const {
    return (links_[link].from_stage < links_[link].to_stage) == forward;
  }

  // The rank that must go on before rank r can do its next action, or kNobody if it can now.
  int WaitsFor(int r) const {
    const Action& a = schedule_.ranks[r][reached_[r]];
    if (Sends(a.kind)) return posted_[MessageOf(a, true)] ? kNobody : schedule_.rank_of_stage[a.peer_stage];
    if (!IsCompute(a.kind) || a.kind == ActionKind::kW) return kNobody;
    for (int l : links_into_[a.stage]) {
      if (!Goes(l, a.kind == ActionKind::kF)) continue;
      const int from = schedule_.rank_of_stage[links_[l].from_stage];
      const bool message = has_messages_ && from != r;
      if (!(message ? sent_ : made_)[Index(l, a.microbatch)]) return from;
    }
    return kNobody;
  }

  void Do(const Action& a) {
    if (IsMessage(a.kind)) {
      (Sends(a.kind) ? sent_ : posted_)[MessageOf(a, Sends(a.kind))] = true;
    } else if (IsCompute(a.kind) && a.kind != ActionKind::kW) {
      for (int l : links_from_[a.stage]) {
        if (Goes(l, a.kind == ActionKind::kF)) made_[Index(l, a.microbatch)] = true;
      }
    }
  }

  const Schedule& schedule_;
  const absl::Span<const StageLink> links_;
  const bool has_messages_;
  const int M_;
  absl::flat_hash_map<std::pair<int, int>, int> link_of_;
  std::vector<std::vector<int>> links_into_, links_from_;  // by stage
  std::vector<bool> made_, posted_, sent_;                 // by link and microbatch
  std::vector<int> reached_;                               // position each rank has got to
};

}  // namespace

absl::Status CheckCompletes(const Schedule& schedule, absl::Span<const StageLink> links, bool has_messages) {
  return Ranks(schedule, links, has_messages).Run();
}

}  // namespace pipec
