// VerifyPlan: what no rank can see alone.
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_type.h"
#include "runtime/plan/verify.h"

namespace pipec {
namespace {

using plan::RankPlan;
using Plans = absl::Span<const RankPlan* const>;
using Actions = google::protobuf::RepeatedPtrField<plan::Action>;
using MessageKey = std::tuple<int, uint32_t, uint32_t>;  // kind, from, to
using InstanceKey = std::pair<MessageKey, int>;          // and microbatch, of all steps; -1 - step if once a step

MessageKey KeyOf(const plan::Message& message) {
  return {message.kind(), message.from_stage(), message.to_stage()};
}

std::string NameOf(const plan::Message& message) {
  return absl::StrCat("message ", plan::MessageKind_Name(message.kind()), " ", message.from_stage(), ">",
                      message.to_stage());
}

std::string TypeOf(const plan::Tensor& tensor) {
  return ToString(
      TensorType{static_cast<DType>(tensor.dtype()), Shape(tensor.shape().begin(), tensor.shape().end())});
}

absl::Status CheckCountsAgree(Plans plans) {
  const RankPlan& first = *plans[0];
  if (plans.size() != first.ranks()) {
    return absl::InvalidArgumentError(absl::StrCat(Counted(plans.size(), "rank file", "rank files"),
                                                   ", the plan has ",
                                                   Counted(first.ranks(), "rank", "ranks")));
  }
  for (size_t r = 0; r < plans.size(); ++r) {
    const RankPlan& p = *plans[r];
    const bool equal =
        p.rank() == r && p.ranks() == first.ranks() && p.virtual_stages() == first.virtual_stages() &&
        p.microbatches() == first.microbatches() && p.microbatch_size() == first.microbatch_size() &&
        p.replicas() == first.replicas() && p.training() == first.training() &&
        p.asynchronous() == first.asynchronous() && p.validates_late() == first.validates_late() &&
        p.lr_by_delay() == first.lr_by_delay() &&
        std::equal(p.rank_of_stage().begin(), p.rank_of_stage().end(), first.rank_of_stage().begin(),
                   first.rank_of_stage().end());
    if (!equal)
      return absl::InvalidArgumentError(absl::StrCat("rank ", r, " belongs to another plan than rank 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckPairs(Plans plans) {
  for (const RankPlan* rank_plan : plans) {
    const RankPlan& p = *rank_plan;
    for (const plan::Message& message : p.messages()) {
      const RankPlan& peer = *plans[message.peer_rank()];
      const plan::Message* other = nullptr;
      for (const plan::Message& candidate : peer.messages()) {
        if (KeyOf(candidate) == KeyOf(message)) other = &candidate;
      }
      auto bad = [&](absl::string_view fault) {
        return absl::InvalidArgumentError(absl::StrCat(NameOf(message), " of rank ", p.rank(), ": ", fault));
      };
      if (other == nullptr || other->sends() == message.sends() || other->peer_rank() != p.rank()) {
        return bad(absl::StrCat("rank ", message.peer_rank(), " has no counterpart"));
      }
      if (other->tensors_size() != message.tensors_size()) {
        return bad(absl::StrCat(Counted(message.tensors_size(), "tensor", "tensors"), ", rank ",
                                message.peer_rank(), " has ", other->tensors_size()));
      }
      for (int i = 0; i < message.tensors_size(); ++i) {
        const std::string mine = TypeOf(p.tensors(message.tensors(i)));
        const std::string theirs = TypeOf(peer.tensors(other->tensors(i)));
        if (mine != theirs) {
          return bad(absl::StrCat("tensor ", i, " '", p.tensors(message.tensors(i)).name(), "' is ", mine,
                                  ", on rank ", message.peer_rank(), " it is ", theirs));
        }
      }
    }
  }
  return absl::OkStatus();
}

// Where steps are validated late: of a message both ends stand in front of the validation, or none.
absl::Status CheckValidation(Plans plans) {
  std::map<InstanceKey, int> in_front;  // ends
  for (const RankPlan* p : plans) {
    for (int i = 0; i < static_cast<int>(p->validate_at()); ++i) {
      const plan::Action& action = p->train(i);
      for (uint32_t message : action.messages()) ++in_front[{KeyOf(p->messages(message)), action.microbatch()}];
    }
  }
  for (const auto& [key, ends] : in_front) {
    if (ends == 2) continue;
    return absl::InvalidArgumentError(absl::StrCat("microbatch ", key.second, " is on its way from stage ",
                                                   std::get<1>(key.first), " to ", std::get<2>(key.first),
                                                   " while the step before is validated"));
  }
  return absl::OkStatus();
}

// The instance of a message that an action exchanges in a step.
int NumberOf(const RankPlan& p, const plan::Action& action, int step) {
  return action.microbatch() < 0 ? -1 - step : step * static_cast<int>(p.microbatches()) + action.microbatch();
}

// How many steps show all that may overlap.
int StepsOf(Plans plans, bool training) {
  int lag = 0;
  for (const RankPlan* p : plans) {
    for (const plan::Action& action : p->train()) lag = std::max(lag, static_cast<int>(action.lag()));
  }
  if (training && plans[0]->asynchronous()) return lag + 4;
  return training && plans[0]->validates_late() ? 2 : 1;
}

// A transport may match messages by their order: from one rank to another they are received in the order in which
// they are sent.
absl::Status CheckOneOrder(Plans plans, bool training) {
  std::map<std::pair<int, int>, std::vector<InstanceKey>> sent, received;  // by rank from and to
  const int steps = StepsOf(plans, training);
  for (const RankPlan* rank_plan : plans) {
    const RankPlan& p = *rank_plan;
    const int rank = static_cast<int>(p.rank());
    for (const ActionRun& run : RunsOf(p, training, steps)) {
      const plan::Action& action = training ? p.train(run.index) : p.eval(run.index);
      for (uint32_t index : action.messages()) {
        const plan::Message& message = p.messages(index);
        const int peer = static_cast<int>(message.peer_rank());
        (message.sends() ? sent[{rank, peer}] : received[{peer, rank}])
            .push_back({KeyOf(message), NumberOf(p, action, run.step)});
      }
    }
  }
  for (const auto& [ranks, order] : sent) {
    const std::vector<InstanceKey>& other = received[ranks];
    for (size_t i = 0; i < std::min(order.size(), other.size()); ++i) {
      if (order[i] == other[i]) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          training ? "training" : "evaluation", ": messages from rank ", ranks.first, " to ", ranks.second,
          " are sent and received in different orders: message ", i, " is sent from stage ",
          std::get<1>(order[i].first), " to ", std::get<2>(order[i].first), " for microbatch ",
          order[i].second, " and received from stage ", std::get<1>(other[i].first), " to ",
          std::get<2>(other[i].first), " for ", other[i].second));
    }
  }
  return absl::OkStatus();
}

// Runs the lists of all ranks with sends that block until their receive is posted.
class BlockingRun {
 public:
  BlockingRun(Plans plans, bool training) : plans_(plans), training_(training) {
    const int steps = StepsOf(plans, training);
    for (const RankPlan* rank_plan : plans) {
      const RankPlan& p = *rank_plan;
      std::vector<std::set<uint32_t>> reads(p.programs_size());
      for (int i = 0; i < p.programs_size(); ++i) {
        for (const plan::Instruction& instruction : p.programs(i).instructions()) {
          for (int32_t tensor : instruction.inputs()) {
            if (tensor >= 0) reads[i].insert(p.tensors(tensor).buffer());
          }
        }
      }
      ranks_.push_back({0, false, {}, std::move(reads), RunsOf(p, training, steps)});
    }
  }

  absl::Status Run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t r = 0; r < plans_.size(); ++r) {
        while (Step(r)) progress = true;
      }
    }
    std::string stuck;
    for (size_t r = 0; r < plans_.size(); ++r) {
      if (ranks_[r].next == static_cast<int>(ranks_[r].runs.size())) continue;
      absl::StrAppend(&stuck, stuck.empty() ? "" : ", ", "rank ", r, " waits in ",
                      ActionName(*plans_[r], List(r)[ranks_[r].runs[ranks_[r].next].index]));
    }
    if (!stuck.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(training_ ? "training" : "evaluation", " deadlocks when sends block: ", stuck));
    }
    for (const InstanceKey& key : posted_) {
      if (sent_.count(key) == 0) {
        return absl::InvalidArgumentError(absl::StrCat("a receive for microbatch ", key.second,
                                                       " from stage ", std::get<1>(key.first), " to ",
                                                       std::get<2>(key.first), " has no send"));
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Rank {
    int next = 0;
    bool receives_posted = false;  // of an exchange whose sends are under way
    std::vector<std::pair<InstanceKey, const plan::Message*>> awaited;
    std::vector<std::set<uint32_t>> reads;  // by program: buffers
    std::vector<ActionRun> runs;
  };

  const Actions& List(size_t r) const { return training_ ? plans_[r]->train() : plans_[r]->eval(); }

  bool Reads(const Rank& rank, const RankPlan& p, const plan::Action& action,
             const plan::Message& received) const {
    auto touches = [&](uint32_t buffer) {
      for (uint32_t tensor : received.tensors()) {
        if (p.tensors(tensor).buffer() == buffer) return true;
      }
      return false;
    };
    if (action.program() >= 0) {
      for (uint32_t tensor : received.tensors()) {
        if (rank.reads[action.program()].count(p.tensors(tensor).buffer()) != 0) return true;
      }
    }
    for (uint32_t index : action.messages()) {
      for (uint32_t tensor : p.messages(index).tensors()) {
        if (p.messages(index).sends() && touches(p.tensors(tensor).buffer())) return true;
      }
    }
    return false;
  }

  // One action of rank r, if it need not wait.
  bool Step(size_t r) {
    Rank& rank = ranks_[r];
    if (rank.next == static_cast<int>(rank.runs.size())) return false;
    const RankPlan& p = *plans_[r];
    const auto [index, step] = rank.runs[rank.next];
    const plan::Action& action = List(r)[index];
    const int number = NumberOf(p, action, step);
    const bool late = training_ && p.validates_late();
    if (late && step > 0 && index >= static_cast<int>(p.validate_at())) {
      for (const plan::Message& message : p.messages()) {
        if (message.kind() == plan::NORMS && sent_.count({KeyOf(message), -step}) == 0) return false;
      }
    }
    for (const auto& [key, message] : rank.awaited) {
      const bool same = key.second == number || key.second < 0 || number < 0;
      if (same && sent_.count(key) == 0 && Reads(rank, p, action, *message)) return false;
    }
    std::vector<InstanceKey> receives;
    for (uint32_t index : action.messages()) {
      const plan::Message& message = p.messages(index);
      if (message.sends()) continue;
      receives.push_back({KeyOf(message), number});
      if (posted_.insert(receives.back()).second) rank.awaited.push_back({receives.back(), &message});
    }
    const bool first_try = !rank.receives_posted;
    rank.receives_posted = true;
    for (uint32_t index : action.messages()) {
      const plan::Message& message = p.messages(index);
      if (!message.sends()) continue;
      const InstanceKey key{KeyOf(message), number};
      if (posted_.count(key) == 0) return first_try && !receives.empty();
      sent_.insert(key);
    }
    const bool exchange = (action.kind() == plan::NORM && !late && !p.asynchronous()) ||
                          (action.kind() == plan::REDUCE_TIED && !p.asynchronous());
    for (const InstanceKey& key : receives) {
      if (exchange && sent_.count(key) == 0) return first_try;
    }
    std::erase_if(rank.awaited, [&](const auto& wait) { return sent_.count(wait.first) != 0; });
    rank.receives_posted = false;
    ++rank.next;
    return true;
  }

  Plans plans_;
  bool training_;
  std::vector<Rank> ranks_;
  std::set<InstanceKey> posted_, sent_;
};

}  // namespace

absl::Status VerifyPlan(Plans rank_plans) {
  if (rank_plans.empty()) return absl::InvalidArgumentError("no rank");
  RETURN_IF_ERROR(CheckCountsAgree(rank_plans));
  RETURN_IF_ERROR(CheckPairs(rank_plans));
  RETURN_IF_ERROR(CheckValidation(rank_plans));
  for (const bool training : {true, false}) {
    if (training && !rank_plans[0]->training()) continue;
    RETURN_IF_ERROR(BlockingRun(rank_plans, training).Run());
    RETURN_IF_ERROR(CheckOneOrder(rank_plans, training));
  }
  return absl::OkStatus();
}

}  // namespace pipec
