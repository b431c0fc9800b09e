#include "runtime/executor/arena.h"

#include "runtime/executor/instruction.h"

namespace pipec {

int SlotOf(const plan::RankPlan& rank_plan, int slot_class, const Moment& moment) {
  if (slot_class < 0) return 0;
  const plan::SlotClass& row = rank_plan.slot_classes(slot_class);
  const bool training = moment.kind == StepKind::kTrain;
  if (row.rule() == plan::VERSION) return moment.version_slot;
  if (row.rule() == plan::STEP) return training ? static_cast<int>(moment.step % row.slots()) : 0;
  if (moment.microbatch < 0) return 0;
  if (!training) return static_cast<int>(row.eval(moment.microbatch));
  if (row.rule() == plan::TABLE) return static_cast<int>(row.train(moment.microbatch));
  return static_cast<int>((moment.step * rank_plan.microbatches() + moment.microbatch) % row.slots());
}

Region RegionOf(const plan::RankPlan& rank_plan, int tensor, const Moment& moment) {
  const plan::Tensor& t = rank_plan.tensors(tensor);
  const plan::Buffer& buffer = rank_plan.buffers(t.buffer());
  const uint64_t begin = buffer.offsets(SlotOf(rank_plan, buffer.slot_class(), moment)) + t.offset();
  return {begin, begin + static_cast<uint64_t>(TypeOf(t).bytes())};
}

bool ShareBytes(const plan::RankPlan& rank_plan, int tensor, int other) {
  const plan::Tensor &a = rank_plan.tensors(tensor), &b = rank_plan.tensors(other);
  if (a.buffer() != b.buffer()) return false;
  return Overlap({a.offset(), a.offset() + static_cast<uint64_t>(TypeOf(a).bytes())},
                 {b.offset(), b.offset() + static_cast<uint64_t>(TypeOf(b).bytes())});
}

const google::protobuf::RepeatedPtrField<plan::Action>& ActionsOf(const plan::RankPlan& rank_plan,
                                                                  StepKind kind) {
  return kind == StepKind::kTrain ? rank_plan.train() : rank_plan.eval();
}

}  // namespace pipec
