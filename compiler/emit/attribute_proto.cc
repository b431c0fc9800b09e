#include "compiler/emit/attribute_proto.h"

namespace pipec {
namespace {

struct Writer {
  plan::Attribute& out;

  void operator()(int64_t v) const { out.set_i(v); }
  void operator()(float v) const { out.set_f(v); }
  void operator()(const std::string& v) const { out.set_s(v); }
  void operator()(const std::vector<int64_t>& v) const {
    out.mutable_ints()->mutable_values()->Add(v.begin(), v.end());
  }
  void operator()(const std::vector<float>& v) const {
    out.mutable_floats()->mutable_values()->Add(v.begin(), v.end());
  }
  void operator()(const std::vector<std::string>& v) const {
    out.mutable_strings();
    for (const std::string& s : v) out.mutable_strings()->add_values(s);
  }
  void operator()(const TensorLiteral& v) const {
    plan::Attribute::Literal& literal = *out.mutable_tensor();
    literal.set_dtype(static_cast<int>(v.type.dtype));
    literal.mutable_shape()->Add(v.type.shape.begin(), v.type.shape.end());
    literal.set_data(*v.bytes);
  }
};

}  // namespace

void AddAttributes(const Attributes& attributes, plan::Instruction& instruction) {
  for (const auto& [name, value] : attributes) {
    plan::Attribute& attribute = *instruction.add_attributes();
    attribute.set_name(name);
    std::visit(Writer{attribute}, value);
  }
}

}  // namespace pipec
