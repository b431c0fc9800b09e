#include "runtime/plan/verify.h"

#include <cmath>
#include <filesystem>
#include <functional>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/mapped_file.h"
#include "runtime/device/null/null_device.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/check.h"
#include "runtime/plan/load.h"
#include "runtime/transport/local/local_transport.h"
#include "tests/unit/support/linear_plan.h"
#include "tests/unit/support/scratch.h"

namespace pipec {
namespace {

using plan::RankPlan;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LinearPlan;
using testing::LinearShape;
using testing::WriteLinearPlan;

constexpr uint64_t kHuge = ~uint64_t{0} - 63;

std::string Directory() { return testing::ScratchPath("plan"); }

TEST(VerifyRankPlan, TakesSoundPlans) {
  for (int ranks : {1, 2}) {
    for (int r = 0; r < ranks; ++r) {
      const absl::Status status = VerifyRankPlan(LinearPlan({.ranks = ranks}, r));
      EXPECT_TRUE(status.ok()) << status;
    }
  }
}

struct Edit {
  const char* what;
  std::function<void(RankPlan&)> make;
  const char* message;
};

// Every promise of FORMAT.md, broken once.
plan::Buffer* WithSlots(RankPlan& p) {
  for (plan::Buffer& buffer : *p.mutable_buffers()) {
    if (buffer.offsets_size() > 1) return &buffer;
  }
  return nullptr;
}

TEST(VerifyRankPlan, RefusesEveryBrokenPromise) {
  const Edit edits[] = {
      {"format", [](RankPlan& p) { p.set_format(1); }, "format 1"},
      {"rank", [](RankPlan& p) { p.set_rank(2); }, "out of range"},
      {"no microbatch", [](RankPlan& p) { p.set_microbatches(0); }, "microbatches"},
      {"many microbatches", [](RankPlan& p) { p.set_microbatches(5); }, "one entry per microbatch"},
      {"stage of no rank", [](RankPlan& p) { p.set_rank_of_stage(0, 7); }, "rank that does not exist"},
      {"few stages", [](RankPlan& p) { p.mutable_rank_of_stage()->RemoveLast(); }, "one entry per stage"},
      {"arena too small", [](RankPlan& p) { p.set_arena_bytes(p.arena_bytes() - 64); }, "outside the arena"},
      {"offset wraps", [](RankPlan& p) { p.mutable_buffers(0)->set_offsets(0, kHuge); }, "outside the arena"},
      {"bytes wrap", [](RankPlan& p) { p.mutable_buffers(0)->set_bytes(kHuge + 63); }, "outside the arena"},
      {"misaligned buffer", [](RankPlan& p) { p.mutable_buffers(0)->set_offsets(0, 32); }, "multiple of 64"},
      {"more slots", [](RankPlan& p) { p.mutable_buffers(0)->add_offsets(0); }, "slots differ"},
      {"no slot", [](RankPlan& p) { p.mutable_buffers(0)->clear_offsets(); }, "slots differ"},
      {"more slots than places", [](RankPlan& p) { p.mutable_slot_classes(0)->set_slots(1u << 31); },
       "slots differ"},
      {"a second slot outside", [](RankPlan& p) { WithSlots(p)->set_offsets(1, p.arena_bytes()); },
       "outside the arena"},
      {"a second slot wraps", [](RankPlan& p) { WithSlots(p)->set_offsets(1, kHuge); }, "outside the arena"},
      {"a misaligned second slot", [](RankPlan& p) { WithSlots(p)->set_offsets(1, 32); }, "multiple of 64"},
      {"slot class", [](RankPlan& p) { p.mutable_buffers(0)->set_slot_class(1); }, "slot class out of range"},
      {"slot entry", [](RankPlan& p) { p.mutable_slot_classes(0)->set_train(1, 2); }, "a slot it has not"},
      {"dtype", [](RankPlan& p) { p.mutable_tensors(0)->set_dtype(8); }, "no valid type"},
      {"dtype beyond a byte", [](RankPlan& p) { p.mutable_tensors(0)->set_dtype(257); }, "no valid type"},
      {"shape wraps",
       [](RankPlan& p) {
         p.mutable_tensors(0)->set_shape(0, int64_t{1} << 62);
         p.mutable_tensors(0)->set_shape(1, 4);
       },
       "no valid type"},
      {"negative dimension", [](RankPlan& p) { p.mutable_tensors(0)->set_shape(0, -3); }, "no valid type"},
      {"larger than its buffer", [](RankPlan& p) { p.mutable_tensors(0)->set_shape(0, 400); },
       "does not fit"},
      {"offset in the slot", [](RankPlan& p) { p.mutable_tensors(0)->set_offset(4); }, "does not fit"},
      {"misaligned tensor", [](RankPlan& p) { p.mutable_tensors(0)->set_offset(2); },
       "multiple of its element"},
      {"buffer of a tensor", [](RankPlan& p) { p.mutable_tensors(0)->set_buffer(999); },
       "buffer out of range"},
      {"flops", [](RankPlan& p) { p.mutable_programs(0)->mutable_instructions(0)->set_flops(std::nan("")); },
       "flops or bytes"},
      {"bytes", [](RankPlan& p) { p.mutable_programs(0)->mutable_instructions(0)->set_bytes(-1); },
       "flops or bytes"},
      {"operand", [](RankPlan& p) { p.mutable_programs(0)->mutable_instructions(0)->set_inputs(0, 999); },
       "input out of range"},
      {"operand below",
       [](RankPlan& p) { p.mutable_programs(0)->mutable_instructions(0)->set_outputs(0, -2); },
       "output out of range"},
      {"program of another rank",
       [](RankPlan& p) { p.mutable_programs(0)->set_stage(p.rank() == 0 ? 1 : 0); }, ""},
      {"program that computes nothing", [](RankPlan& p) { p.mutable_programs(0)->set_kind(plan::SEND_F); },
       "computes nothing"},
      {"kind beyond the enum",
       [](RankPlan& p) { p.mutable_programs(0)->set_kind(static_cast<plan::ActionKind>(77)); },
       "computes nothing"},
      {"attribute without value",
       [](RankPlan& p) {
         p.mutable_programs(0)->mutable_instructions(0)->add_attributes()->set_name("axis");
       },
       "no value"},
      {"literal of another size",
       [](RankPlan& p) {
         plan::Attribute* a = p.mutable_programs(0)->mutable_instructions(0)->add_attributes();
         a->mutable_tensor()->set_dtype(1);
         a->mutable_tensor()->add_shape(2);
         a->mutable_tensor()->set_data("123");
       },
       "differs from its type"},
      {"action without program", [](RankPlan& p) { p.mutable_train(1)->set_program(99); },
       "program out of range"},
      {"action with another's program",
       [](RankPlan& p) {
         for (auto& a : *p.mutable_train()) {
           if (a.kind() == plan::B) a.set_program(0);
         }
       },
       "another stage's or kind's"},
      {"microbatch", [](RankPlan& p) { p.mutable_train(1)->set_microbatch(4); }, "microbatch out of range"},
      {"negative microbatch", [](RankPlan& p) { p.mutable_train(1)->set_microbatch(-1); },
       "microbatch out of range"},
      {"action twice", [](RankPlan& p) { *p.add_train() = p.train(1); }, ""},
      {"last action lost",
       [](RankPlan& p) { p.mutable_train()->RemoveLast(), p.mutable_train()->RemoveLast(); }, ""},
      {"actions swapped", [](RankPlan& p) { p.mutable_train()->SwapElements(2, 5); }, ""},
      {"backward in evaluation",
       [](RankPlan& p) {
         for (const auto& a : p.train()) {
           if (a.kind() == plan::B) *p.add_eval() = a;
         }
       },
       "forward only"},
      {"parameter's tensor", [](RankPlan& p) { p.mutable_parameters(0)->set_tensor(999); }, "out of range"},
      {"parameter's length", [](RankPlan& p) { p.mutable_parameters(0)->set_length(4); }, "length"},
      {"parameter's offset", [](RankPlan& p) { p.mutable_parameters(0)->set_offset(kHuge); }, "overflows"},
      {"parameter's file", [](RankPlan& p) { p.mutable_parameters(0)->set_file("../../etc/passwd"); },
       "leaves the plan"},
      {"parameter's type in its file", [](RankPlan& p) { p.mutable_parameters(0)->set_dtype(6); }, "widened"},
      {"parameter's length in 16 bits", [](RankPlan& p) { p.mutable_parameters(0)->set_dtype(16); },
       "length"},
      {"parameter's index", [](RankPlan& p) { p.mutable_parameters(0)->set_index(-1); }, "index"},
      {"parameter's state", [](RankPlan& p) { p.mutable_parameters(0)->add_states(999); }, "state"},
      {"port", [](RankPlan& p) { p.mutable_inputs(0)->set_tensor(999); }, "out of range"},
      {"port twice", [](RankPlan& p) { *p.add_inputs() = p.inputs(0); }, "not unique"},
      {"loss", [](RankPlan& p) { p.set_loss(999); }, "loss is not a float64 scalar"},
      {"loss of another type", [](RankPlan& p) { p.set_loss(0); }, "loss is not a float64 scalar"},
      {"inference with training", [](RankPlan& p) { p.set_training(false); }, ""},
  };
  for (int rank : {0, 1}) {
    for (const Edit& edit : edits) {
      RankPlan p = LinearPlan({.ranks = 2}, rank);
      edit.make(p);
      const absl::Status status = VerifyRankPlan(p);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << edit.what << ", rank " << rank;
      EXPECT_THAT(std::string(status.message()), HasSubstr(edit.message)) << edit.what << ", rank " << rank;
    }
  }
}

TEST(VerifyRankPlan, RefusesBrokenMessagesAndConstants) {
  const Edit edits[] = {
      {"peer", [](RankPlan& p) { p.mutable_messages(0)->set_peer_rank(5); }, "its ends"},
      {"direction", [](RankPlan& p) { p.mutable_messages(0)->set_sends(!p.messages(0).sends()); },
       "its ends"},
      {"stage", [](RankPlan& p) { p.mutable_messages(0)->set_to_stage(9); }, "stage out of range"},
      {"kind", [](RankPlan& p) { p.mutable_messages(0)->set_kind(plan::GRADIENTS); },
       "gradients to a later stage"},
      {"tensor", [](RankPlan& p) { p.mutable_messages(0)->set_tensors(0, 999); }, "tensor out of range"},
      {"twice", [](RankPlan& p) { *p.add_messages() = p.messages(0); }, "second message"},
      {"never exchanged", [](RankPlan& p) { p.mutable_train(p.train_size() - 2)->clear_messages(); },
       "not exchanged"},
      {"constant's data", [](RankPlan& p) { p.mutable_constants(0)->set_data("12345"); }, "constant"},
      {"once a step, with slots",
       [](RankPlan& p) { p.mutable_programs(0)->mutable_instructions(0)->set_once_a_step(true); },
       "a place for each microbatch"},
      {"once a step, not forward",
       [](RankPlan& p) {
         for (auto& program : *p.mutable_programs()) {
           if (program.kind() == plan::UPDATE) program.mutable_instructions(0)->set_once_a_step(true);
         }
       },
       "which only instructions of F do"},
      {"evaluation only, not forward",
       [](RankPlan& p) {
         for (auto& program : *p.mutable_programs()) {
           if (program.kind() == plan::B) program.mutable_instructions(0)->set_eval_only(true);
         }
       },
       "runs in evaluation only, which only instructions of F do"},
      {"written constant",
       [](RankPlan& p) {
         p.mutable_programs(0)->mutable_instructions(0)->set_outputs(0, p.constants(0).tensor());
       },
       "writes a constant"},
  };
  for (const Edit& edit : edits) {
    RankPlan p = LinearPlan({.ranks = 2}, 1);
    edit.make(p);
    EXPECT_THAT(std::string(VerifyRankPlan(p).message()), HasSubstr(edit.message)) << edit.what;
  }
}

absl::Status VerifyEdited(const std::function<void(RankPlan&, RankPlan&)>& edit) {
  RankPlan first = LinearPlan({.ranks = 2}, 0), second = LinearPlan({.ranks = 2}, 1);
  edit(first, second);
  EXPECT_TRUE(VerifyRankPlan(first).ok() && VerifyRankPlan(second).ok()) << "a rank alone cannot see it";
  const RankPlan* plans[] = {&first, &second};
  return VerifyPlan(plans);
}

// A transposed message has the bytes of the right one; an int32 those of a float32.
plan::Instruction* Named(RankPlan& p, const std::string& name) {
  for (plan::Program& program : *p.mutable_programs()) {
    for (plan::Instruction& instruction : *program.mutable_instructions()) {
      if (instruction.name() == name) return &instruction;
    }
  }
  return nullptr;
}

void MakeAccumulate(plan::Instruction& instruction, int sum) {
  plan::Attribute* const attribute = instruction.add_attributes();
  attribute->set_name("accumulate");
  attribute->set_i(1);
  instruction.add_inputs(sum);
  instruction.set_outputs(0, sum);
}

TEST(VerifyRankPlan, ResultsThatAreAddedLieOnTheirSums) {
  RankPlan p = LinearPlan({.ranks = 1}, 0);
  const int sum = Named(p, "sum dW1")->outputs(0), other = Named(p, "sum dW0")->outputs(0);
  const int parameter = Named(p, "dh")->inputs(1), transient = Named(p, "dW1")->outputs(0);
  const auto verify = [](const RankPlan& edited) { return std::string(VerifyRankPlan(edited).message()); };
  RankPlan sound = p;
  MakeAccumulate(*Named(sound, "dW1"), sum);
  EXPECT_EQ(verify(sound), "");
  for (const int elsewhere : {other, parameter, transient, -1}) {
    RankPlan edited = sound;
    Named(edited, "dW1")->set_outputs(0, elsewhere);
    EXPECT_THAT(verify(edited), HasSubstr("accumulates, which")) << elsewhere;
  }
  RankPlan on_parameter = p, forward = p, without = p;
  MakeAccumulate(*Named(on_parameter, "dW1"), parameter);
  MakeAccumulate(*Named(forward, "y"), sum);
  MakeAccumulate(*Named(without, "dW1"), sum);
  Named(without, "dW1")->clear_inputs();
  for (const RankPlan& edited : {on_parameter, forward, without})
    EXPECT_THAT(verify(edited), HasSubstr("accumulates, which"));
}

TEST(VerifyPlan, SeesWhatNoRankSeesAlone) {
  EXPECT_TRUE(VerifyEdited([](RankPlan&, RankPlan&) {}).ok());
  absl::Status dtype =
      VerifyEdited([](RankPlan&, RankPlan& p) { p.mutable_tensors(p.messages(0).tensors(0))->set_dtype(6); });
  EXPECT_THAT(std::string(dtype.message()),
              AllOf(HasSubstr("int32[3,4]"), HasSubstr("float32[3,4]"), HasSubstr("0>1")));
  absl::Status shape = VerifyEdited([](RankPlan&, RankPlan& p) {
    plan::Tensor* t = p.mutable_tensors(p.messages(0).tensors(0));
    t->set_shape(0, 4), t->set_shape(1, 3);
  });
  EXPECT_THAT(std::string(shape.message()), HasSubstr("float32[4,3]"));
  absl::Status order = VerifyEdited([](RankPlan&, RankPlan& p) {
    for (auto& m : *p.mutable_messages()) {
      if (m.tensors_size() == 3) m.mutable_tensors()->RemoveLast();
    }
  });
  EXPECT_THAT(std::string(order.message()), HasSubstr("3 tensors"));
  absl::Status other = VerifyEdited([](RankPlan& p, RankPlan&) { p.set_microbatch_size(4); });
  EXPECT_THAT(std::string(other.message()), HasSubstr("another plan"));
}

// "Receive just before use, send right after" is sound on each rank and deadlocks when sends block.
TEST(VerifyPlan, FindsDeadlocksOfBlockingSends) {
  absl::Status status = VerifyEdited([](RankPlan&, RankPlan& p) {
    // 1RECV_F1 behind 1SEND_B0.
    p.mutable_train()->SwapElements(2, 3);
    p.mutable_train()->SwapElements(3, 4);
  });
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("deadlock"), HasSubstr("0SEND_F1"), HasSubstr("1SEND_B0")));
}

// Each completes when sends block, and is matched wrongly by who goes by the order of arrival.
TEST(VerifyPlan, FindsMessagesReceivedInAnotherOrderThanSent) {
  absl::Status status = VerifyEdited([](RankPlan&, RankPlan& p) {
    // 1RECV_F1 in front of 1RECV_F0.
    p.mutable_train()->SwapElements(1, 2);
    p.mutable_train()->SwapElements(0, 1);
  });
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("training: messages from rank 0 to 1"), HasSubstr("different orders"),
                    HasSubstr("for microbatch 0 and received"), HasSubstr("for 1")));
  status = VerifyEdited([](RankPlan&, RankPlan& p) {
    p.mutable_eval()->SwapElements(1, 2);
    p.mutable_eval()->SwapElements(0, 1);
  });
  EXPECT_THAT(std::string(status.message()), HasSubstr("evaluation: messages from rank 0 to 1"));
}

TEST(CheckPlan, TakesASoundPlanAndNamesTheFileOfABrokenOne) {
  const LinearShape shape;
  WriteLinearPlan(Directory(), shape);
  EXPECT_TRUE(CheckPlan(Directory()).ok()) << CheckPlan(Directory());
  testing::WriteBytes(Directory() + "/rank-001.plan", "edited", 6);
  EXPECT_THAT(std::string(CheckPlan(Directory()).message()),
              AllOf(HasSubstr("rank-001.plan"), HasSubstr("hash")));
  WriteLinearPlan(Directory(), shape);
  std::filesystem::resize_file(Directory() + "/" + testing::kParametersFile, 8);
  EXPECT_THAT(std::string(CheckPlan(Directory()).message()), HasSubstr(testing::kParametersFile));
  std::filesystem::remove(Directory() + "/manifest.json");
  EXPECT_THAT(std::string(CheckPlan(Directory()).message()), HasSubstr("is not a plan"));
}

// What the verifier lets pass can be run: nothing it did not promise is needed. Messages go nowhere and
// kernels do nothing.
void VerifyAndRun(const std::string& bytes) {
  RankPlan p;
  if (!p.ParseFromString(bytes) || !VerifyRankPlan(p).ok()) return;
  LocalHub hub(static_cast<int>(p.ranks()));
  auto device = MakeNullDevice();
  auto transport = hub.Connect(static_cast<int>(p.rank()), *device);
  auto executor = Executor::Create(p, Directory(), *device, *transport, {.timeout = absl::ZeroDuration()});
  if (!executor.ok()) return;  // a parameter beyond its file, an arena beyond the memory
  std::vector<std::byte> memory(1 << 16);
  std::vector<const std::byte*> inputs(p.inputs_size() * p.microbatches(), memory.data());
  std::vector<StepScalars> scalars(p.microbatches());
  (*executor)->Run(StepKind::kEval, scalars, {inputs, {}}).IgnoreError();
}

TEST(Loader, DamagedPlansNeverCrash) {
  for (int ranks : {1, 2}) {
    const LinearShape shape{.ranks = ranks, .microbatches = 2};
    WriteLinearPlan(Directory(), shape);
    const std::string good = LinearPlan(shape, 0).SerializeAsString();
    std::mt19937 random(1);
    for (size_t length = 0; length < good.size(); length += 13) VerifyAndRun(good.substr(0, length));
    for (int round = 0; round < 4000; ++round) {
      std::string bytes = good;
      for (unsigned k = 0; k <= random() % 3; ++k) bytes[random() % bytes.size()] ^= 1 << random() % 8;
      VerifyAndRun(bytes);
    }
  }
}

TEST(Loader, AFileThatFitsItsHashIsStillVerified) {
  const LinearShape shape{.ranks = 1};
  WriteLinearPlan(Directory(), shape);
  RankPlan p = LinearPlan(shape, 0);
  p.mutable_tensors(0)->set_buffer(999);
  const std::string edited = p.SerializeAsString();
  for (const std::string& bytes :
       {edited, edited.substr(0, edited.size() / 2), std::string("no protobuf at all")}) {
    testing::WriteBytes(Directory() + "/" + RankFileName(0), bytes.data(), bytes.size());
    testing::WriteManifest(Directory(), shape);
    const auto loaded = LoadRankPlan(Directory(), *LoadManifest(Directory()), 0);
    EXPECT_FALSE(loaded.ok());
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("rank-000.plan"));
  }
}

}  // namespace
}  // namespace pipec
