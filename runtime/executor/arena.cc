#include "runtime/executor/arena.h"

#include "runtime/executor/instruction.h"

namespace pipec {

int SlotOf(const plan::RankPlan& rank_plan, int slot_class, StepKind kind, int microbatch) {
  if (slot_class < 0 || microbatch < 0) return 0;
  const plan::SlotClass& row = rank_plan.slot_classes(slot_class);
  return static_cast<int>(kind == StepKind::kTrain ? row.train(microbatch) : row.eval(microbatch));
}

Region RegionOf(const plan::RankPlan& rank_plan, int tensor, StepKind kind, int microbatch) {
  const plan::Tensor& t = rank_plan.tensors(tensor);
  const plan::Buffer& buffer = rank_plan.buffers(t.buffer());
  const uint64_t stride = (buffer.bytes() + 63) / 64 * 64;
  const uint64_t begin =
      buffer.offset() + stride * SlotOf(rank_plan, buffer.slot_class(), kind, microbatch) + t.offset();
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
