// Executor: what was measured (ExecutorOptions::profile).
#include "runtime/base/cost_key.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/instruction.h"

namespace pipec {
namespace {

std::string KeyOf(const plan::RankPlan& rank_plan, const plan::Instruction& instruction) {
  auto types = [&](const google::protobuf::RepeatedField<int32_t>& tensors) {
    std::vector<TensorType> types;
    for (int32_t tensor : tensors)
      types.push_back(tensor < 0 ? TensorType{} : TypeOf(rank_plan.tensors(tensor)));
    return types;
  };
  return CostKey(instruction.domain(), instruction.op(), AttributesOf(instruction),
                 types(instruction.inputs()), types(instruction.outputs()));
}

}  // namespace

void Executor::ForgetTimes() {
  for (std::vector<RunTimes>& program : measured_) {
    for (RunTimes& times : program) times.Forget();
  }
  beside_instructions_.Forget();
}

ProfileOfRank Executor::profile() const {
  ProfileOfRank profile;
  for (int p = 0; p < plan_.programs_size(); ++p) {
    for (int i = 0; i < plan_.programs(p).instructions_size(); ++i) {
      const plan::Instruction& planned = plan_.programs(p).instructions(i);
      profile.instructions.push_back({planned.name(), planned.op(), KeyOf(plan_, planned), planned.flops(),
                                      planned.bytes(), static_cast<int>(plan_.programs(p).stage()),
                                      plan_.programs(p).kind(), measured_[p][i].Typical(),
                                      measured_[p][i].runs()});
    }
  }
  profile.action_seconds = beside_instructions_.Typical();
  profile.messages = lists_[plan_.training() ? 0 : 1].times;
  return profile;
}

}  // namespace pipec
