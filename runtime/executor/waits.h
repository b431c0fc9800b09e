// Which messages must be complete before which action: found once, when the plan is loaded.
//
// Every message action starts something that ends later: a receive owns its tensors' bytes until it has come,
// a send must find its bytes unchanged until it has gone. So before an action that touches the bytes of a
// receive, or writes the bytes of a send, the executor waits for it. Bytes, not buffers, are compared:
// buffers share memory.
//
// The list of an asynchronous plan is a round. What a round starts may end in a later one, so an action may wait for an
// exchange of an earlier round, its own included, and norms are under way like any other message.
#pragma once

#include <vector>

#include "runtime/executor/arena.h"
#include "runtime/plan/plan.pb.h"

namespace pipec {

// One message of one action, or its sum over the replicas, which owns its tensors' bytes as a receive does. Numbered
// within the list in order of actions, then of an action's messages.
struct Exchange {
  int action = 0;
  int message = 0;  // index into the plan's messages; -1: a sum
};

struct ActionPlan {
  std::vector<int> waits;       // exchanges to wait for before the action, if they are under way
  std::vector<int> exchanges;   // what it starts, by sending and receiving rank
  std::vector<int> feeds;       // input ports to write before it
  std::vector<int> deliveries;  // output ports to read after it
};

struct ListPlan {
  std::vector<ActionPlan> actions;
  std::vector<Exchange> exchanges;
};

// Whether an action's exchanges are waited for in the action itself: norms and ties, but in asynchronous plans.
bool EndsWithItsAction(const plan::RankPlan& rank_plan, const plan::Action& action);

ListPlan PlanList(const plan::RankPlan& rank_plan, StepKind kind);

}  // namespace pipec
