// Sequences whose length is known: lists of tensors while the model is imported, gone afterwards.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/in_place/in_place.h"
#include "compiler/onnx/in_place/known_numbers.h"
#include "compiler/onnx/in_place/stack_tensors.h"
#include "compiler/onnx/read/tensor_data.h"
#include "compiler/onnx/schema/emit_node.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using Result = absl::StatusOr<std::vector<Meaning>>;

absl::StatusOr<Sequence> SequenceOf(const Meaning& meaning) {
  if (const auto* sequence = std::get_if<Sequence>(&meaning)) return *sequence;
  if (const auto* refusal = std::get_if<absl::Status>(&meaning)) return *refusal;
  return absl::InvalidArgumentError(absl::StrCat("wanted a sequence, got ", Describe(meaning)));
}

absl::Status Put(Sequence& sequence, int64_t place, Value* element) {
  RETURN_IF_ERROR(CheckParts(static_cast<int64_t>(sequence.elements.size()) + 1));
  if (sequence.dtype == DType::kUndefined) sequence.dtype = element->type.dtype;
  if (sequence.dtype != element->type.dtype) {
    return absl::InvalidArgumentError(absl::StrCat("a sequence of ", Name(sequence.dtype),
                                                   " tensors cannot take ", ToString(element->type)));
  }
  sequence.elements.insert(sequence.elements.begin() + place, element);
  return absl::OkStatus();
}

// A place among `count`, counted from the end if negative; `otherwise` if the operand is absent.
absl::StatusOr<int64_t> PlaceOf(const Meaning& operand, int64_t count, int64_t otherwise) {
  if (std::holds_alternative<Absent>(operand)) return otherwise;
  ASSIGN_OR_RETURN(const int64_t given, KnownInt(operand, "position"));
  const int64_t place = given < 0 ? given + count : given;
  if (place >= 0 && place < count) return place;
  return absl::InvalidArgumentError(absl::StrCat("position ", given, " does not exist among ", count));
}

Result Empty(const InPlaceNode& node, InPlaceImporter&) {
  const int64_t code = node.attributes.Int("dtype", static_cast<int64_t>(DType::kFloat32));
  Sequence sequence{.dtype = DTypeOf(static_cast<int>(code))};
  if (SizeOf(sequence.dtype) == 0) {
    return absl::UnimplementedError(
        absl::StrCat("element type ", ElementTypeName(static_cast<int>(code)), " is not supported"));
  }
  return std::vector<Meaning>{std::move(sequence)};
}

Result Construct(const InPlaceNode& node, InPlaceImporter&) {
  Sequence sequence;
  for (const Meaning& operand : node.operands) {
    ASSIGN_OR_RETURN(Value * element, TensorOf(operand));
    RETURN_IF_ERROR(Put(sequence, static_cast<int64_t>(sequence.elements.size()), element));
  }
  return std::vector<Meaning>{std::move(sequence)};
}

Result Insert(const InPlaceNode& node, InPlaceImporter&) {
  ASSIGN_OR_RETURN(Sequence sequence, SequenceOf(node.operand(0)));
  ASSIGN_OR_RETURN(Value * element, TensorOf(node.operand(1)));
  const int64_t count = static_cast<int64_t>(sequence.elements.size());
  int64_t place = count;
  if (!std::holds_alternative<Absent>(node.operand(2))) {
    // Before an element, or behind all: one place more than there are elements, but -1 is before the last.
    ASSIGN_OR_RETURN(place, KnownInt(node.operand(2), "position"));
    if (place < -count || place > count) {
      return absl::InvalidArgumentError(absl::StrCat("position ", place, " does not exist among ", count));
    }
    if (place < 0) place += count;
  }
  RETURN_IF_ERROR(Put(sequence, place, element));
  return std::vector<Meaning>{std::move(sequence)};
}

Result Erase(const InPlaceNode& node, InPlaceImporter&) {
  ASSIGN_OR_RETURN(Sequence sequence, SequenceOf(node.operand(0)));
  const int64_t count = static_cast<int64_t>(sequence.elements.size());
  if (count == 0) return absl::InvalidArgumentError("erases from an empty sequence");
  ASSIGN_OR_RETURN(const int64_t place, PlaceOf(node.operand(1), count, count - 1));
  sequence.elements.erase(sequence.elements.begin() + place);
  return std::vector<Meaning>{std::move(sequence)};
}

Result At(const InPlaceNode& node, InPlaceImporter&) {
  ASSIGN_OR_RETURN(const Sequence sequence, SequenceOf(node.operand(0)));
  if (std::holds_alternative<Absent>(node.operand(1))) return absl::InvalidArgumentError("has no position");
  ASSIGN_OR_RETURN(const int64_t place,
                   PlaceOf(node.operand(1), static_cast<int64_t>(sequence.elements.size()), 0));
  return std::vector<Meaning>{sequence.elements[place]};
}

Result Length(const InPlaceNode& node, InPlaceImporter& importer) {
  ASSIGN_OR_RETURN(const Sequence sequence, SequenceOf(node.operand(0)));
  return std::vector<Meaning>{
      AddInt(importer.graph(), node.name, static_cast<int64_t>(sequence.elements.size()))};
}

// How long each part of `size` entries is: one length for all but the last, or a list.
absl::StatusOr<std::vector<int64_t>> PartLengths(const Meaning& split, int64_t size) {
  ASSIGN_OR_RETURN(const Value* value, TensorOf(split));
  ASSIGN_OR_RETURN(std::vector<int64_t> lengths, KnownInts(split, "split"));
  if (value->type.shape.empty()) {
    const int64_t length = lengths[0];
    if (length < 1)
      return absl::InvalidArgumentError(absl::StrCat("splits into parts of ", length, " entries"));
    RETURN_IF_ERROR(CheckParts(size / length));
    lengths.assign(size / length, length);
    if (size % length != 0) lengths.push_back(size % length);
  }
  RETURN_IF_ERROR(CheckParts(static_cast<int64_t>(lengths.size())));
  return lengths;
}

Result Split(const InPlaceNode& node, InPlaceImporter& importer) {
  ASSIGN_OR_RETURN(Value * value, TensorOf(node.operand(0)));
  ASSIGN_OR_RETURN(const int64_t axis,
                   AxisFromFront(node.attributes.Int("axis", 0), value->type.shape.size()));
  const int64_t size = value->type.shape[axis];
  const bool given = !std::holds_alternative<Absent>(node.operand(1));
  Sequence sequence{.dtype = value->type.dtype};
  if (given) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, PartLengths(node.operand(1), size));
    ASSIGN_OR_RETURN(sequence.elements, SplitInto(importer, node.name, value, axis, lengths, false));
  } else if (node.attributes.Int("keepdims", 1) == 0) {
    ASSIGN_OR_RETURN(sequence.elements, Unstack(importer, node.name, value, axis));
  } else {
    RETURN_IF_ERROR(CheckParts(size));
    const std::vector<int64_t> ones(size, 1);
    ASSIGN_OR_RETURN(sequence.elements, SplitInto(importer, node.name, value, axis, ones, false));
  }
  return std::vector<Meaning>{std::move(sequence)};
}

Result ConcatFrom(const InPlaceNode& node, InPlaceImporter& importer) {
  ASSIGN_OR_RETURN(const Sequence sequence, SequenceOf(node.operand(0)));
  if (sequence.elements.empty()) return absl::InvalidArgumentError("concatenates an empty sequence");
  const int64_t axis = node.attributes.Int("axis");
  const bool new_axis = node.attributes.Int("new_axis", 0) != 0;
  ASSIGN_OR_RETURN(Value * value, new_axis ? Stack(importer, node.name, sequence.elements, axis)
                                           : Concatenate(importer, node.name, sequence.elements, axis));
  return std::vector<Meaning>{value};
}

// The body once for every element of the first sequence; other sequences give their elements beside it.
Result Map(const InPlaceNode& node, InPlaceImporter& importer) {
  ASSIGN_OR_RETURN(const onnx::GraphProto* body, node.Body("body"));
  ASSIGN_OR_RETURN(const Sequence first, SequenceOf(node.operand(0)));
  if (body->input_size() != node.operands.size() || body->output_size() < node.outputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", Counted(node.operands.size(), "operand", "operands"), " and ", node.outputs,
                     " results, but its body has ", Counted(body->input_size(), "input", "inputs"), " and ",
                     Counted(body->output_size(), "output", "outputs")));
  }
  std::vector<Sequence> sequences(body->output_size());
  for (size_t i = 0; i < first.elements.size(); ++i) {
    std::vector<Meaning> operands = node.operands;
    for (Meaning& operand : operands) {
      const auto* sequence = std::get_if<Sequence>(&operand);
      if (!sequence) continue;
      if (sequence->elements.size() != first.elements.size()) {
        return absl::InvalidArgumentError(absl::StrCat("maps sequences of ", first.elements.size(),
                                                       " and of ", sequence->elements.size(), " tensors"));
      }
      Value* element = sequence->elements[i];
      operand = element;
    }
    ASSIGN_OR_RETURN(const std::vector<Meaning> results,
                     importer.ImportBody(*body, absl::StrCat(node.name, "/", i, "/"), std::move(operands)));
    for (size_t k = 0; k < results.size(); ++k) {
      ASSIGN_OR_RETURN(Value * element, TensorOf(results[k]));
      RETURN_IF_ERROR(Put(sequences[k], static_cast<int64_t>(i), element));
    }
  }
  return std::vector<Meaning>(sequences.begin(), sequences.end());
}

constexpr InPlaceOp kOps[] = {
    {"SequenceEmpty", Empty},   {"SequenceConstruct", Construct},
    {"SequenceInsert", Insert}, {"SequenceErase", Erase},
    {"SequenceAt", At},         {"SequenceLength", Length},
    {"SplitToSequence", Split}, {"ConcatFromSequence", ConcatFrom},
    {"SequenceMap", Map},
};

}  // namespace

absl::Span<const InPlaceOp> SequenceOps() { return kOps; }

}  // namespace pipec
