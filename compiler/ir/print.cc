#include "compiler/ir/print.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/schedule/action.h"

namespace pipec {
namespace {

constexpr int kShownElements = 8;

template <typename T>
std::string Elements(absl::string_view bytes, int count) {
  std::vector<T> values(count);
  std::memcpy(values.data(), bytes.data(), count * sizeof(T));
  return absl::StrJoin(values, ", ");
}

// " = {1, 2}" for contents that are short enough to help; otherwise where they are.
std::string Contents(DType dtype, int64_t elements, absl::string_view bytes) {
  if (elements > kShownElements) return "";
  switch (dtype) {
    case DType::kFloat32:
      return absl::StrCat(" = {", Elements<float>(bytes, elements), "}");
    case DType::kFloat64:
      return absl::StrCat(" = {", Elements<double>(bytes, elements), "}");
    case DType::kInt64:
      return absl::StrCat(" = {", Elements<int64_t>(bytes, elements), "}");
    case DType::kInt32:
      return absl::StrCat(" = {", Elements<int32_t>(bytes, elements), "}");
    case DType::kBool:
      return absl::StrCat(" = {", Elements<uint8_t>(bytes, elements), "}");
    default:
      return "";
  }
}

std::string Typed(const Value* value, int64_t samples) {
  if (!value) return "-";
  std::string text = absl::StrCat(value->name(), ": ", ToString(value->type));
  if (value->batch_axis < 0) return text;
  absl::StrAppend(&text, " batch axis ", value->batch_axis);
  if (samples < 1 || value->batch_axis >= value->type.shape.size()) return text;  // a broken module
  const int64_t size = value->type.shape[value->batch_axis];
  if (size != samples) absl::StrAppend(&text, " (", samples, "x", size / samples, ")");
  return text;
}

struct AttributePrinter {
  std::string operator()(int64_t v) const { return absl::StrCat(v); }
  std::string operator()(float v) const { return absl::StrCat(v); }
  std::string operator()(const std::string& v) const { return absl::StrCat("\"", v, "\""); }
  std::string operator()(const std::vector<int64_t>& v) const {
    return absl::StrCat("[", absl::StrJoin(v, ", "), "]");
  }
  std::string operator()(const std::vector<float>& v) const {
    return absl::StrCat("[", absl::StrJoin(v, ", "), "]");
  }
  std::string operator()(const std::vector<std::string>& v) const {
    return absl::StrCat("[\"", absl::StrJoin(v, "\", \""), "\"]");
  }
  std::string operator()(const TensorLiteral& v) const {
    return absl::StrCat(ToString(v.type), Contents(v.type.dtype, v.type.elements(), *v.bytes));
  }
};

std::string Print(const Node& node, bool staged, int64_t samples) {
  std::string line = "  ";
  if (staged) {
    absl::StrAppend(&line, node.stage, std::string(1, Letter(node.kind)), " ");
  } else if (node.kind != Kind::kF) {
    absl::StrAppend(&line, std::string(1, Letter(node.kind)), " ");
  }
  absl::StrAppend(&line, absl::StrJoin(node.outputs(), ", ", [samples](std::string* out, const Value* v) {
    out->append(Typed(v, samples));
  }));
  absl::StrAppend(&line, " = ", node.domain().empty() ? "" : absl::StrCat(node.domain(), "::"), node.op(),
                  "(",
                  absl::StrJoin(node.inputs(), ", ",
                                [](std::string* out, const Value* v) { out->append(v ? v->name() : "-"); }),
                  ")");
  if (!node.attributes.empty()) {
    absl::StrAppend(&line, " {",
                    absl::StrJoin(node.attributes, ", ",
                                  [](std::string* out, const auto& attribute) {
                                    absl::StrAppend(out, attribute.first, "=",
                                                    std::visit(AttributePrinter(), attribute.second));
                                  }),
                    "}");
  }
  absl::StrAppend(&line, "\n");
  return line;
}

void PrintGraph(const Module& module, std::string& out) {
  for (const Value* value : module.graph.Values()) {
    constexpr const char* kNames[] = {"input", "parameter", "constant", "accumulator", "state"};
    if (value->producer()) continue;
    absl::StrAppend(&out, kNames[static_cast<int>(value->kind())], " ", Typed(value, module.microbatch_size));
    if (value->kind() == ValueKind::kConstant && value->data.bytes) {
      out.append(Contents(value->type.dtype, value->type.elements(), *value->data.bytes));
    }
    if (value->data.stored != DType::kUndefined) {
      absl::StrAppend(&out, " stored as ", Name(value->data.stored));
    }
    if (value->data.file) absl::StrAppend(&out, " in file");
    out.append("\n");
  }
  for (const Node* node = module.graph.first_node(); node; node = node->next()) {
    out.append(Print(*node, module.level >= Level::kStaged, module.microbatch_size));
  }
  for (const Value* value : module.graph.outputs) {
    absl::StrAppend(&out, "output ", value->name(),
                    value->output_name.empty() ? "" : absl::StrCat(" as ", value->output_name), "\n");
  }
}

void PrintTraining(const Training& training, std::string& out) {
  absl::StrAppend(&out, "optimizer ", training.optimizer, "\n");
  auto named = [&](absl::string_view what, const Value* value) {
    if (value) absl::StrAppend(&out, what, " ", value->name(), "\n");
  };
  named("loss sum", training.loss_sum);
  named("loss weight", training.loss_weight);
  if (training.loss_is_sum) out.append("loss is a sum over samples\n");
  named("correct", training.correct);
  named("predictions", training.predictions);
  for (const TrainedParameter& trained : training.parameters) {
    absl::StrAppend(
        &out, "trained ", trained.parameter->name(), " <- ",
        absl::StrJoin(trained.accumulated, " + ",
                      [](std::string* text, const Value* v) { text->append(v ? v->name() : "-"); }),
        "\n");
  }
}

void PrintStages(const Module& module, std::string& out) {
  for (int s = 0; s < module.stages.size(); ++s)
    absl::StrAppend(&out, "stage ", s, " on rank ", module.stages[s].rank, "\n");
  constexpr const char* kKinds[] = {"activation", "gradient", "tied", "norm"};
  for (const Message& message : module.messages) {
    absl::StrAppend(&out, "message ", kKinds[static_cast<int>(message.kind)], " ", message.from_stage, ">",
                    message.to_stage, ": ", message.node->name(), "\n");
  }
}

void PrintSchedule(absl::string_view what, const Schedule& schedule, std::string& out) {
  for (int r = 0; r < schedule.ranks.size(); ++r) {
    absl::StrAppend(
        &out, what, " rank ", r, ": ",
        absl::StrJoin(schedule.ranks[r], " ",
                      [](std::string* text, const Action& action) { text->append(ToString(action)); }),
        "\n");
  }
}

void PrintMemory(const std::vector<RankMemory>& memory, std::string& out) {
  for (int r = 0; r < memory.size(); ++r) {
    absl::StrAppend(&out, "memory rank ", r, ": ", memory[r].arena_bytes, " bytes, lower bound ",
                    memory[r].lower_bound);
    for (int kind = 0; kind < kBufferKinds; ++kind) {
      if (memory[r].peaks[kind] > 0)
        absl::StrAppend(&out, ", ", Name(static_cast<BufferKind>(kind)), " ", memory[r].peaks[kind]);
    }
    out += '\n';
    for (const Buffer& buffer : memory[r].buffers) {
      absl::StrAppend(&out, "  ", Name(buffer.kind), " ", buffer.name, ": ", buffer.bytes, " bytes at ",
                      absl::StrJoin(buffer.offsets, ", "), "\n");
    }
    for (const Program& program : memory[r].programs) {
      absl::StrAppend(&out, "  program ", program.stage, Name(program.kind), ": ",
                      absl::StrJoin(program.nodes, " ",
                                    [](std::string* text, const Node* n) { text->append(n->name()); }),
                      "\n");
    }
  }
}

}  // namespace

std::string Print(const Module& module) {
  std::string out = absl::StrCat("module ", module.model_name, " level ", Name(module.level), " mode ",
                                 module.mode == Mode::kTrain ? "train" : "infer", " microbatch ",
                                 module.microbatch_size, "\n");
  PrintGraph(module, out);
  if (module.mode == Mode::kTrain && module.level >= Level::kTraining) PrintTraining(module.training, out);
  if (module.level >= Level::kStaged) PrintStages(module, out);
  if (module.level >= Level::kScheduled) {
    PrintSchedule("schedule", module.schedule, out);
    PrintSchedule("evaluation", module.eval_schedule, out);
  }
  if (module.level >= Level::kPlanned) PrintMemory(module.memory, out);
  for (const std::string& note : module.notes) absl::StrAppend(&out, "note ", note, "\n");
  return out;
}

}  // namespace pipec
