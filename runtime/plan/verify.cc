#include "runtime/plan/verify.h"

#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/plan/load.h"
#include "runtime/plan/manifest.h"
#include "runtime/plan/verify_actions.h"
#include "runtime/plan/verify_versions.h"

namespace pipec {
namespace {

using plan::RankPlan;

constexpr uint64_t kMaxArena = uint64_t{1} << 50;
constexpr uint32_t kMaxCount = 1u << 24;
constexpr int kMaxTensorRank = 32;

absl::Status Bad(absl::string_view what, int index, absl::string_view name, absl::string_view fault) {
  return absl::InvalidArgumentError(absl::StrCat(what, " ", index, " '", name, "': ", fault));
}

// Bytes of shape x dtype, or -1 if that is no size.
int64_t CheckedBytes(int32_t dtype, const google::protobuf::RepeatedField<int64_t>& shape) {
  if (dtype < 0 || dtype > 255 || shape.size() > kMaxTensorRank) return -1;
  int64_t bytes = SizeOf(static_cast<DType>(dtype));
  if (bytes == 0) return -1;
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim == 0 ? 1 : dim, &bytes)) return -1;
    empty |= dim == 0;
  }
  return empty ? 0 : bytes;
}

absl::Status CheckCounts(const RankPlan& p) {
  auto bad = [](absl::string_view what) { return absl::InvalidArgumentError(std::string(what)); };
  if (p.format() != kPlanFormat)
    return bad(absl::StrCat("format ", p.format(), ", this version reads format ", kPlanFormat));
  if (p.ranks() < 1 || p.ranks() > kMaxCount || p.rank() >= p.ranks())
    return bad("rank or ranks out of range");
  if (p.virtual_stages() < 1 || p.virtual_stages() > kMaxCount) return bad("virtual_stages out of range");
  if (p.microbatches() < 1 || p.microbatches() > kMaxCount) return bad("microbatches out of range");
  if (p.microbatch_size() < 1 || p.replicas() < 1) return bad("microbatch_size or replicas is 0");
  if (p.arena_bytes() > kMaxArena) return bad("arena_bytes out of range");
  if (static_cast<uint64_t>(p.rank_of_stage_size()) != uint64_t{p.ranks()} * p.virtual_stages()) {
    return bad("rank_of_stage has not one entry per stage");
  }
  if (p.asynchronous() ? !p.training() || p.weight_delay() > p.ranks() : p.weight_delay() != 0 || p.lr_by_delay())
    return bad("asynchronous, weight_delay and lr_by_delay do not fit each other or the mode");
  if (p.replicas() > kMaxCount) return bad("replicas out of range");
  if (p.replicas() > 1 && (p.asynchronous() || !p.training()))
    return bad("several replicas, which only train, with a flush between steps");
  if (p.validates_late() ? !p.training() || p.asynchronous() || p.validate_at() > static_cast<uint32_t>(p.train_size())
                         : p.validate_at() != 0)
    return bad("validates_late and validate_at do not fit each other or the mode");
  for (uint32_t rank : p.rank_of_stage()) {
    if (rank >= p.ranks()) return bad("rank_of_stage names a rank that does not exist");
  }
  return absl::OkStatus();
}

absl::Status CheckMemory(const RankPlan& p) {
  for (int i = 0; i < p.slot_classes_size(); ++i) {
    const plan::SlotClass& slot_class = p.slot_classes(i);
    const bool table = slot_class.rule() == plan::TABLE, cycle = slot_class.rule() == plan::CYCLE;
    const bool ahead = slot_class.rule() == plan::VERSION && p.validates_late();
    if (!plan::SlotRule_IsValid(slot_class.rule()) || (table == p.asynchronous() && !ahead))
      return Bad("slot class", i, "", "has a rule that is not for such a plan");
    const int microbatches = static_cast<int>(p.microbatches());
    const bool counts = slot_class.slots() >= 1 &&
                        slot_class.train_size() == (table && p.training() ? microbatches : 0) &&
                        slot_class.eval_size() == (table || cycle ? microbatches : 0);
    if (!counts) return Bad("slot class", i, "", "has not one entry per microbatch, or entries that its rule has not");
    if (slot_class.rule() == plan::VERSION && slot_class.slots() != (ahead ? 2 : p.weight_delay() + 1))
      return Bad("slot class", i, "", "has not one slot a weight version");
    for (const auto* list : {&slot_class.train(), &slot_class.eval()}) {
      for (uint32_t slot : *list) {
        if (slot >= slot_class.slots()) return Bad("slot class", i, "", "names a slot it has not");
      }
    }
  }
  for (int i = 0; i < p.buffers_size(); ++i) {
    const plan::Buffer& buffer = p.buffers(i);
    if (!plan::BufferKind_IsValid(buffer.kind())) return Bad("buffer", i, buffer.name(), "unknown kind");
    if (buffer.slot_class() < -1 || buffer.slot_class() >= p.slot_classes_size()) {
      return Bad("buffer", i, buffer.name(), "slot class out of range");
    }
    const uint32_t slots = buffer.slot_class() < 0 ? 1 : p.slot_classes(buffer.slot_class()).slots();
    if (static_cast<uint32_t>(buffer.offsets_size()) != slots)
      return Bad("buffer", i, buffer.name(), "slots differ from its class's");
    for (const uint64_t offset : buffer.offsets()) {
      if (offset % 64 != 0) return Bad("buffer", i, buffer.name(), "offset is not a multiple of 64");
      if (buffer.bytes() > p.arena_bytes() || offset > p.arena_bytes() - buffer.bytes())
        return Bad("buffer", i, buffer.name(), "lies outside the arena");
    }
  }
  for (int i = 0; i < p.tensors_size(); ++i) {
    const plan::Tensor& tensor = p.tensors(i);
    const int64_t bytes = CheckedBytes(tensor.dtype(), tensor.shape());
    if (bytes < 0) return Bad("tensor", i, tensor.name(), "has no valid type");
    if (tensor.buffer() >= static_cast<uint32_t>(p.buffers_size())) {
      return Bad("tensor", i, tensor.name(), "buffer out of range");
    }
    if (tensor.offset() % SizeOf(static_cast<DType>(tensor.dtype())) != 0) {
      return Bad("tensor", i, tensor.name(), "offset is not a multiple of its element's size");
    }
    const uint64_t slot = p.buffers(tensor.buffer()).bytes();
    if (tensor.offset() > slot || static_cast<uint64_t>(bytes) > slot - tensor.offset()) {
      return Bad("tensor", i, tensor.name(), "does not fit into its buffer");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAttribute(const plan::Attribute& attribute) {
  if (attribute.value_case() == plan::Attribute::VALUE_NOT_SET) {
    return absl::InvalidArgumentError(absl::StrCat("attribute '", attribute.name(), "' has no value"));
  }
  if (attribute.has_tensor() && CheckedBytes(attribute.tensor().dtype(), attribute.tensor().shape()) !=
                                    static_cast<int64_t>(attribute.tensor().data().size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute '", attribute.name(), "': data differs from its type"));
  }
  return absl::OkStatus();
}

// Whether it adds to sums of microbatches itself (attribute `accumulate`).
bool Accumulates(const plan::Instruction& instruction) {
  return std::any_of(instruction.attributes().begin(), instruction.attributes().end(),
                     [](const plan::Attribute& a) { return a.name() == "accumulate" && a.i() != 0; });
}

// Whether each result lies where one of the last operands lies, a gradient.
bool LiesOnSums(const RankPlan& p, const plan::Instruction& instruction) {
  const int own = instruction.inputs_size() - instruction.outputs_size();
  for (int k = 0; own >= 0 && k < instruction.outputs_size(); ++k) {
    const int32_t sum = instruction.inputs(own + k), result = instruction.outputs(k);
    if (sum < 0 && result < 0) continue;
    if (sum < 0 || result < 0) return false;
    const plan::Tensor &from = p.tensors(sum), &to = p.tensors(result);
    if (from.buffer() != to.buffer() || from.offset() != to.offset() ||
        p.buffers(to.buffer()).kind() != plan::GRADIENT)
      return false;
  }
  return own >= 0;
}

absl::Status CheckPrograms(const RankPlan& p) {
  for (int i = 0; i < p.programs_size(); ++i) {
    const plan::Program& program = p.programs(i);
    if (program.stage() >= static_cast<uint32_t>(p.rank_of_stage_size()) ||
        p.rank_of_stage(program.stage()) != p.rank()) {
      return Bad("program", i, "", "its stage is not on this rank");
    }
    switch (program.kind()) {
      case plan::F:
      case plan::B:
      case plan::I:
      case plan::W:
      case plan::NORM:
      case plan::UPDATE:
        break;
      default:
        return Bad("program", i, "", "its kind computes nothing");
    }
    for (int k = 0; k < program.instructions_size(); ++k) {
      const plan::Instruction& instruction = program.instructions(k);
      auto bad = [&](absl::string_view fault) {
        return Bad("instruction", k, instruction.name(), absl::StrCat("program ", i, ": ", fault));
      };
      if (instruction.op().empty()) return bad("no op");
      constexpr double kDay = 86400;
      if (!(instruction.modelled_seconds() >= 0 && instruction.modelled_seconds() <= kDay))
        return bad("a modelled time that is none");
      if (!(std::isfinite(instruction.flops()) && instruction.flops() >= 0 && std::isfinite(instruction.bytes()) &&
            instruction.bytes() >= 0))
        return bad("flops or bytes that are none");
      for (const plan::Attribute& attribute : instruction.attributes()) {
        absl::Status status = CheckAttribute(attribute);
        if (!status.ok()) return bad(status.message());
      }
      for (int32_t tensor : instruction.inputs()) {
        if (tensor < -1 || tensor >= p.tensors_size()) return bad("input out of range");
      }
      for (int32_t tensor : instruction.outputs()) {
        if (tensor < -1 || tensor >= p.tensors_size()) return bad("output out of range");
        if (tensor >= 0 && p.buffers(p.tensors(tensor).buffer()).kind() == plan::CONSTANT) {
          return bad("writes a constant");
        }
        if (instruction.once_a_step() && tensor >= 0 && !HasVersions(p, tensor) &&
            p.buffers(p.tensors(tensor).buffer()).slot_class() >= 0) {
          return bad("runs once a step, but its result has a place for each microbatch");
        }
      }
      const bool backward = program.kind() == plan::B || program.kind() == plan::I || program.kind() == plan::W;
      if (Accumulates(instruction) && !(backward && LiesOnSums(p, instruction)))
        return bad("accumulates, which instructions of B, I and W do, into gradients that are their last operands");
      if (instruction.eval_only() && program.kind() != plan::F)
        return bad("runs in evaluation only, which only instructions of F do");
      if (instruction.once_a_step() && program.kind() != plan::F)
        return bad("runs once a step, which only instructions of F do");
    }
  }
  return CheckVersions(p);
}

absl::Status CheckMessages(const RankPlan& p) {
  std::set<std::tuple<int, uint32_t, uint32_t>> seen;
  for (int i = 0; i < p.messages_size(); ++i) {
    const plan::Message& message = p.messages(i);
    auto bad = [&](absl::string_view fault) { return Bad("message", i, "", fault); };
    if (!plan::MessageKind_IsValid(message.kind())) return bad("unknown kind");
    const uint32_t stages = p.rank_of_stage_size();
    if (message.from_stage() >= stages || message.to_stage() >= stages) return bad("stage out of range");
    const uint32_t here = p.rank_of_stage(message.sends() ? message.from_stage() : message.to_stage());
    const uint32_t there = p.rank_of_stage(message.sends() ? message.to_stage() : message.from_stage());
    if (here != p.rank() || there != message.peer_rank() || here == there) {
      return bad("its ends are not this rank and the peer");
    }
    if (message.kind() == plan::ACTIVATIONS && message.from_stage() >= message.to_stage()) {
      return bad("activations to an earlier stage");
    }
    if (message.kind() == plan::GRADIENTS && message.from_stage() <= message.to_stage()) {
      return bad("gradients to a later stage");
    }
    if (!seen.insert({message.kind(), message.from_stage(), message.to_stage()}).second) {
      return bad("a second message of this kind between these stages");
    }
    for (uint32_t tensor : message.tensors()) {
      if (tensor >= static_cast<uint32_t>(p.tensors_size())) return bad("tensor out of range");
      if (!message.sends() && p.buffers(p.tensors(tensor).buffer()).kind() == plan::CONSTANT) {
        return bad("overwrites a constant");
      }
    }
  }
  return absl::OkStatus();
}

bool IsWholeSlot(const RankPlan& p, uint32_t tensor) {
  return tensor < static_cast<uint32_t>(p.tensors_size()) &&
         p.buffers(p.tensors(tensor).buffer()).offsets_size() == 1;
}

uint64_t BytesOf(const RankPlan& p, uint32_t tensor) {
  return CheckedBytes(p.tensors(tensor).dtype(), p.tensors(tensor).shape());
}

bool StoredTypeFits(const RankPlan& p, const plan::Parameter& parameter) {
  if (parameter.dtype() == 0) return true;
  return p.tensors(parameter.tensor()).dtype() == static_cast<int>(DType::kFloat32) &&
         (parameter.dtype() == static_cast<int>(DType::kFloat16) ||
          parameter.dtype() == static_cast<int>(DType::kBFloat16));
}

// In the file: half of the tensor's bytes if the file holds 16-bit floats.
uint64_t StoredBytes(const RankPlan& p, const plan::Parameter& parameter) {
  const uint64_t bytes = BytesOf(p, parameter.tensor());
  return parameter.dtype() == 0 ? bytes : bytes / 2;
}

bool IsPathOfPlan(absl::string_view path) {
  if (absl::StartsWith(path, "/")) return true;
  for (absl::string_view part : absl::StrSplit(path, '/')) {
    if (part == ".." || part.empty()) return false;
  }
  return true;
}

absl::Status CheckParameters(const RankPlan& p) {
  std::set<absl::string_view> names;
  std::set<int32_t> indices;
  for (int i = 0; i < p.parameters_size(); ++i) {
    const plan::Parameter& parameter = p.parameters(i);
    auto bad = [&](absl::string_view fault) { return Bad("parameter", i, parameter.name(), fault); };
    if (parameter.name().empty() || !names.insert(parameter.name()).second)
      return bad("its name is not unique");
    const bool versions = parameter.trained() && parameter.tensor() < static_cast<uint32_t>(p.tensors_size()) &&
                          HasVersions(p, parameter.tensor());
    if (!versions && !IsWholeSlot(p, parameter.tensor())) return bad("its tensor is out of range or has several slots");
    if (p.buffers(p.tensors(parameter.tensor()).buffer()).kind() == plan::CONSTANT)
      return bad("lies in a constant");
    if (!StoredTypeFits(p, parameter)) return bad("is stored in a type that is not widened to its tensor's");
    uint64_t end;
    if (parameter.file().empty()) {
      if (parameter.length() != 0) return bad("has bytes but no file");
    } else if (!IsPathOfPlan(parameter.file())) {
      return bad("its file leaves the plan");
    } else if (parameter.length() != StoredBytes(p, parameter)) {
      return bad("its length is not its tensor's");
    } else if (__builtin_add_overflow(parameter.offset(), parameter.length(), &end) || end >> 63 != 0) {
      return bad("offset + length overflows");
    }
    if (parameter.trained() ? parameter.index() < 0 || parameter.index() >= static_cast<int>(kMaxCount) ||
                                  !indices.insert(parameter.index()).second
                            : parameter.index() != -1) {
      return bad("its index is not that of a trained parameter");
    }
    for (uint32_t state : parameter.states()) {
      const bool in_versions =
          p.validates_late() && state < static_cast<uint32_t>(p.tensors_size()) && HasVersions(p, state);
      if (!in_versions && !IsWholeSlot(p, state)) return bad("a state is out of range or has several slots");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRest(const RankPlan& p) {
  for (int i = 0; i < p.constants_size(); ++i) {
    const plan::Constant& constant = p.constants(i);
    if (!IsWholeSlot(p, constant.tensor()) ||
        p.buffers(p.tensors(constant.tensor()).buffer()).kind() != plan::CONSTANT ||
        constant.data().size() != BytesOf(p, constant.tensor())) {
      return Bad("constant", i, "", "its data or tensor is not a constant's");
    }
  }
  for (const auto* ports : {&p.inputs(), &p.outputs()}) {
    std::set<absl::string_view> names;
    for (int i = 0; i < ports->size(); ++i) {
      const plan::Port& port = ports->Get(i);
      if (port.tensor() >= static_cast<uint32_t>(p.tensors_size()))
        return Bad("port", i, port.name(), "out of range");
      if (!names.insert(port.name()).second) return Bad("port", i, port.name(), "its name is not unique");
      if (ports == &p.inputs() && p.buffers(p.tensors(port.tensor()).buffer()).kind() == plan::CONSTANT) {
        return Bad("port", i, port.name(), "overwrites a constant");
      }
    }
  }
  for (const plan::Peak& peak : p.peaks()) {
    if (!plan::BufferKind_IsValid(peak.kind())) return absl::InvalidArgumentError("a peak of unknown kind");
  }
  struct Scalar {
    const char* name;
    int32_t tensor;
    DType dtype;
    bool is_sum;
  };
  for (const Scalar& scalar :
       {Scalar{"loss_sum", p.loss_sum(), DType::kFloat64, true},
        Scalar{"loss_weight", p.loss_weight(), DType::kFloat64, true},
        Scalar{"correct", p.correct(), DType::kInt64, true},
        Scalar{"predictions", p.predictions(), DType::kInt64, true},
        Scalar{"gradient_norm", p.gradient_norm(), DType::kFloat64, false},
        Scalar{"loss", p.loss(), DType::kFloat64, false}}) {
    if (scalar.tensor == -1) continue;
    // Sums are read in evaluation only, where steps do not overlap.
    const bool by_step = scalar.is_sum && scalar.tensor >= 0 && scalar.tensor < p.tensors_size() &&
                         HasRule(p, scalar.tensor, plan::STEP);
    if (scalar.tensor < 0 || (!by_step && !IsWholeSlot(p, scalar.tensor)) ||
        p.tensors(scalar.tensor).dtype() != static_cast<int>(scalar.dtype) ||
        BytesOf(p, scalar.tensor) != 8) {
      return absl::InvalidArgumentError(
          absl::StrCat(scalar.name, " is not a ", Name(scalar.dtype), " scalar in one place"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyRankPlan(const RankPlan& rank_plan) {
  RETURN_IF_ERROR(CheckCounts(rank_plan));
  RETURN_IF_ERROR(CheckMemory(rank_plan));
  RETURN_IF_ERROR(CheckPrograms(rank_plan));
  RETURN_IF_ERROR(CheckMessages(rank_plan));
  RETURN_IF_ERROR(CheckActions(rank_plan));
  RETURN_IF_ERROR(CheckParameters(rank_plan));
  return CheckRest(rank_plan);
}

absl::Status VerifyParameterFiles(const RankPlan& rank_plan, const std::string& directory) {
  for (const plan::Parameter& parameter : rank_plan.parameters()) {
    if (parameter.file().empty()) continue;
    const std::string path = PlanPath(directory, parameter.file());
    struct stat info;
    if (stat(path.c_str(), &info) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("parameter '", parameter.name(), "': '", path, "'"));
    }
    if (!S_ISREG(info.st_mode) ||
        parameter.offset() + parameter.length() > static_cast<uint64_t>(info.st_size)) {
      return absl::InvalidArgumentError(absl::StrCat("parameter '", parameter.name(), "': bytes ",
                                                     parameter.offset(), " to ",
                                                     parameter.offset() + parameter.length(), " of '", path,
                                                     "', which has ", static_cast<int64_t>(info.st_size)));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipec
