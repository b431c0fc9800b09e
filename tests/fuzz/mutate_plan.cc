// How the fuzzer of plans changes a plan: a field anywhere in the tree gets another value, or an entry of a list
// goes, comes twice or changes places. Bytes changed at random seldom leave a message, and more seldom one that a
// verifier takes.

#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include "runtime/plan/plan.pb.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace pipec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class Silent : public google::protobuf::io::ErrorCollector {
  void AddError(int, int, const std::string&) override {}
};

int Below(int n, std::mt19937& random) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

int64_t NewInt(int64_t old, std::mt19937& random) {
  const int64_t values[] = {old + 1, old - 1, old * 2, -old, 0, 1, -1, 64, 1000, std::numeric_limits<int32_t>::max(),
                            std::numeric_limits<int64_t>::max() / 4};
  return values[Below(std::size(values), random)];
}

double NewFloat(double old, std::mt19937& random) {
  const double values[] = {0, 1, -old, old * 1e30, std::numeric_limits<double>::quiet_NaN()};
  return values[Below(std::size(values), random)];
}

// Places where a change can be made: a field of a message in the tree, present or of no list.
struct Place {
  Message* message;
  const FieldDescriptor* field;
};

void Collect(Message& message, std::vector<Place>& places) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    places.push_back({&message, field});
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) Collect(*reflection.MutableMessage(&message, field), places);
    for (int i = 0; field->is_repeated() && i < reflection.FieldSize(message, field); ++i) {
      Collect(*reflection.MutableRepeatedMessage(&message, field, i), places);
    }
  }
  // A number that is 0 is not listed.
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    const bool number = field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated();
    if (number && field->containing_oneof() == nullptr && !reflection.HasField(message, field)) {
      places.push_back({&message, field});
    }
  }
}

// A list of numbers or messages: an entry goes, comes twice or changes places with another; of messages only.
void Rearrange(const Place& place, std::mt19937& random) {
  const Reflection& reflection = *place.message->GetReflection();
  const int size = reflection.FieldSize(*place.message, place.field);
  const int i = Below(size, random);
  switch (Below(3, random)) {
    case 0:
      reflection.SwapElements(place.message, place.field, i, size - 1);
      return reflection.RemoveLast(place.message, place.field);
    case 1:
      return reflection.SwapElements(place.message, place.field, i, Below(size, random));
    default:
      if (place.field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return;
      reflection.AddMessage(place.message, place.field)
          ->CopyFrom(reflection.GetRepeatedMessage(*place.message, place.field, i));
  }
}

template <typename T, typename Get, typename Set, typename GetAt, typename SetAt>
void Change(const Place& place, std::mt19937& random, T (*make)(T, std::mt19937&), Get get, Set set, GetAt get_at,
            SetAt set_at) {
  const Reflection& reflection = *place.message->GetReflection();
  if (!place.field->is_repeated()) {
    return (reflection.*set)(place.message, place.field, make((reflection.*get)(*place.message, place.field), random));
  }
  const int i = Below(reflection.FieldSize(*place.message, place.field), random);
  (reflection.*set_at)(place.message, place.field, i,
                       make((reflection.*get_at)(*place.message, place.field, i), random));
}

void Mutate(Message& message, std::mt19937& random) {
  std::vector<Place> places;
  Collect(message, places);
  if (places.empty()) return;
  const Place& place = places[Below(static_cast<int>(places.size()), random)];
  const Reflection& reflection = *place.message->GetReflection();
  const bool list = place.field->is_repeated();
  if (list && (place.field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE || Below(3, random) == 0)) {
    return Rearrange(place, random);
  }
#define PIPEC_CHANGE(NAME, TYPE, MAKE)                                                                             \
  return Change<TYPE>(place, random, [](TYPE old, std::mt19937& r) { return static_cast<TYPE>(MAKE(old, r)); },    \
                      &Reflection::Get##NAME, &Reflection::Set##NAME, &Reflection::GetRepeated##NAME,              \
                      &Reflection::SetRepeated##NAME)
  switch (place.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: PIPEC_CHANGE(Int32, int32_t, NewInt);
    case FieldDescriptor::CPPTYPE_UINT32: PIPEC_CHANGE(UInt32, uint32_t, NewInt);
    case FieldDescriptor::CPPTYPE_INT64: PIPEC_CHANGE(Int64, int64_t, NewInt);
    case FieldDescriptor::CPPTYPE_UINT64: PIPEC_CHANGE(UInt64, uint64_t, NewInt);
    case FieldDescriptor::CPPTYPE_FLOAT: PIPEC_CHANGE(Float, float, NewFloat);
    case FieldDescriptor::CPPTYPE_DOUBLE: PIPEC_CHANGE(Double, double, NewFloat);
    case FieldDescriptor::CPPTYPE_BOOL:
      if (!list) reflection.SetBool(place.message, place.field, !reflection.GetBool(*place.message, place.field));
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      if (!list) {
        const auto* type = place.field->enum_type();
        reflection.SetEnum(place.message, place.field, type->value(Below(type->value_count(), random)));
      }
      return;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return reflection.ClearField(place.message, place.field);
    case FieldDescriptor::CPPTYPE_STRING:
      return;  // libFuzzer's own changes of bytes do that
  }
#undef PIPEC_CHANGE
}

}  // namespace
}  // namespace pipec

// Called by libFuzzer in place of its own changes, which it still makes where there is no plan, and now and then.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::mt19937 random(seed);
  pipec::plan::RankPlan rank_plan;
  google::protobuf::TextFormat::Parser parser;
  pipec::Silent silent;
  parser.RecordErrorsTo(&silent);
  if (seed % 8 == 0 || !parser.ParseFromString({reinterpret_cast<const char*>(data), size}, &rank_plan)) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  pipec::Mutate(rank_plan, random);
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(rank_plan, &text) || text.size() > max_size) return size;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
