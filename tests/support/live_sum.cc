#include "tests/support/live_sum.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "runtime/executor/arena.h"

namespace pipec {
namespace {

using plan::Action;
using plan::RankPlan;

class Counter {
 public:
  explicit Counter(const RankPlan& p) : p_(p), kind_(p.training() ? StepKind::kTrain : StepKind::kEval) {}

  int64_t Count() {
    const auto& list = ActionsOf(p_, kind_);
    std::vector<std::vector<Region>> arrivals(list.size());  // what is sent until the end of an action
    std::vector<int64_t> begins;
    for (int k = 0; k < list.size(); ++k) {
      begins.push_back(now_);
      const Moment moment{kind_, list[k].microbatch()};
      Feed(list[k], moment);
      const bool norm = list[k].kind() == plan::NORM;
      if (!norm) Exchange(list, k, moment, arrivals);
      RunProgram(list[k], moment);
      if (norm) Exchange(list, k, moment, arrivals);
      for (const Region& sent : arrivals[k]) Read(sent, now_ - 1);
    }
    for (const int tensor :
         {p_.loss_sum(), p_.loss_weight(), p_.correct(), p_.predictions(), p_.gradient_norm(), p_.loss()}) {
      if (tensor >= 0) Read(RegionOf(p_, tensor, {kind_}), now_ - 1);
    }
    if (p_.validates_late()) KeepWhatUpdatesRead(begins);
    for (const auto& [begin, piece] : pieces_) End(begin, piece, now_);
    return Largest();
  }

 private:
  struct Piece {
    uint64_t end;
    int64_t written, read;  // times
  };

  bool Keeps(int tensor) const {
    const plan::BufferKind kind = p_.buffers(p_.tensors(tensor).buffer()).kind();
    return kind == plan::PARAMETER || kind == plan::GRADIENT || kind == plan::OPTIMIZER_STATE ||
           kind == plan::CONSTANT;
  }
  bool Skipped(const plan::Instruction& instruction, const Moment& moment) const {
    return (instruction.eval_only() && p_.training()) || (instruction.once_a_step() && moment.microbatch > 0);
  }

  // Ends the life of what lay there before `time`.
  void Cover(const Region& region, int64_t time) {
    auto it = pieces_.lower_bound(region.begin);
    if (it != pieces_.begin() && std::prev(it)->second.end > region.begin)
      it = Split(std::prev(it), region.begin);
    while (it != pieces_.end() && it->first < region.end) {
      if (it->second.end > region.end) Split(it, region.end);
      End(it->first, it->second, time);
      it = pieces_.erase(it);
    }
  }
  void Write(const Region& region, int64_t time) {
    if (region.begin == region.end) return;
    Cover(region, time);
    pieces_[region.begin] = {region.end, time, time};
  }
  void Read(const Region& region, int64_t time) {
    auto it = pieces_.upper_bound(region.begin);
    if (it != pieces_.begin()) --it;
    for (; it != pieces_.end() && it->first < region.end; ++it) {
      if (it->second.end <= region.begin) continue;
      if (it->first < region.begin) it = Split(it, region.begin);
      if (it->second.end > region.end) Split(it, region.end);
      it->second.read = std::max(it->second.read, time);
    }
  }
  using Pieces = std::map<uint64_t, Piece>;
  // The upper part.
  Pieces::iterator Split(Pieces::iterator it, uint64_t at) {
    const Piece upper = it->second;
    it->second.end = at;
    return pieces_.emplace(at, upper).first;
  }
  void End(uint64_t begin, const Piece& piece, int64_t covered) {
    AddLife(piece.written, std::min(piece.read + 1, covered), piece.end - begin);
  }
  void AddLife(int64_t from, int64_t to, uint64_t bytes) {
    if (from >= to) return;
    changes_.push_back({from, static_cast<int64_t>(bytes)});
    changes_.push_back({to, -static_cast<int64_t>(bytes)});
  }

  // Inputs that the action is the first to read or send in its microbatch.
  void Feed(const Action& action, const Moment& moment) {
    if (action.microbatch() < 0) return;
    std::set<uint32_t> read;  // buffers
    for (const uint32_t m : action.messages()) {
      for (const uint32_t tensor : p_.messages(m).tensors()) {
        if (p_.messages(m).sends()) read.insert(p_.tensors(tensor).buffer());
      }
    }
    if (action.program() >= 0) {
      for (const plan::Instruction& instruction : p_.programs(action.program()).instructions()) {
        if (instruction.eval_only() && p_.training()) continue;
        for (const int tensor : instruction.inputs()) {
          if (tensor >= 0) read.insert(p_.tensors(tensor).buffer());
        }
      }
    }
    for (const plan::Port& port : p_.inputs()) {
      if (read.contains(p_.tensors(port.tensor()).buffer()) &&
          fed_.insert({port.tensor(), action.microbatch()}).second)
        Write(RegionOf(p_, port.tensor(), moment), now_);
    }
  }

  void RunProgram(const Action& action, const Moment& moment) {
    const int64_t begin = now_;
    if (action.program() >= 0) {
      std::set<int> written;
      for (const plan::Instruction& instruction : p_.programs(action.program()).instructions()) {
        if (!Skipped(instruction, moment)) {
          for (const int tensor : instruction.inputs()) {
            if (tensor < 0 || Keeps(tensor)) continue;
            const Region region = RegionOf(p_, tensor, moment);
            Read(region, now_);
            if (action.kind() == plan::UPDATE) read_by_updates_.insert({region.begin, region.end});
          }
          for (const int tensor : instruction.outputs()) {
            if (tensor < 0 || Keeps(tensor)) continue;
            Write(RegionOf(p_, tensor, moment), now_);
            written.insert(tensor);
          }
        }
        ++now_;
      }
      for (const plan::Port& port : p_.outputs()) {
        if (written.contains(port.tensor())) Read(RegionOf(p_, port.tensor(), moment), now_ - 1);
      }
    }
    now_ = std::max(now_, begin + 1);
  }

  void Exchange(const google::protobuf::RepeatedPtrField<Action>& list, int k, const Moment& moment,
                std::vector<std::vector<Region>>& arrivals) {
    const Action& action = list[k];
    const int64_t time = action.kind() == plan::NORM ? now_ - 1 : now_;
    for (const uint32_t m : action.messages()) {
      const plan::Message& message = p_.messages(m);
      for (const uint32_t tensor : message.tensors()) {
        if (Keeps(tensor)) continue;
        const Region region = RegionOf(p_, tensor, moment);
        if (!message.sends()) {
          Write(region, time);
          continue;
        }
        Read(region, time);
        int last = k;
        for (int j = k + 1; j < list.size(); ++j) {
          if (list[j].kind() > plan::W) continue;
          if (list[j].modelled_start() >= action.modelled_start() + action.modelled_seconds()) break;
          last = j;
        }
        if (last > k) arrivals[last].push_back(region);
      }
    }
  }

  void KeepWhatUpdatesRead(const std::vector<int64_t>& begins) {
    for (const auto& [begin, end] : read_by_updates_) {
      Read({begin, end}, now_ - 1);
      AddLife(0, begins[p_.validate_at()], end - begin);
    }
  }

  int64_t Largest() {
    int64_t live = 0;
    for (const plan::Buffer& buffer : p_.buffers()) {
      const bool keeps = buffer.kind() == plan::PARAMETER || buffer.kind() == plan::GRADIENT ||
                         buffer.kind() == plan::OPTIMIZER_STATE || buffer.kind() == plan::CONSTANT;
      if (keeps) live += static_cast<int64_t>(buffer.bytes()) * buffer.offsets_size();
    }
    std::sort(changes_.begin(), changes_.end());  // at one time what ends comes first
    int64_t most = live;
    for (const auto& [time, bytes] : changes_) most = std::max(most, live += bytes);
    return most;
  }

  const RankPlan& p_;
  const StepKind kind_;
  int64_t now_ = 0;
  Pieces pieces_;
  std::set<std::pair<uint32_t, int>> fed_;                   // tensor and microbatch
  std::set<std::pair<uint64_t, uint64_t>> read_by_updates_;  // bytes [first, second)
  std::vector<std::pair<int64_t, int64_t>> changes_;         // time, bytes
};

}  // namespace

int64_t LiveSum(const RankPlan& rank_plan) { return Counter(rank_plan).Count(); }

}  // namespace pipec
