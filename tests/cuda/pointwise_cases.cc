#include "tests/cuda/pointwise_cases.h"

#include <cmath>
#include <cstring>

#include "tests/cuda/draw.h"

namespace pipec {
namespace {

using DrawType = DType (*)(Random& random);

DType SignedNumber(Random& random) {
  constexpr DType kIntegers[] = {DType::kInt64, DType::kInt32, DType::kInt8};
  return Draw(random, 0, 2) ? AnyFloat(random) : kIntegers[Draw(random, 0, 2)];
}
DType Bool(Random&) { return DType::kBool; }
DType NumberOrBool(Random& random) { return Draw(random, 0, 3) ? AnyNumber(random) : DType::kBool; }

enum class Values { kAny, kPositive, kAboveOne, kBelowOne };

// Floats outside of an op's domain are brought into it.
std::string Within(const TensorType& type, Values values, Random& random) {
  if (values == Values::kAny) return RandomContents(type, random);
  if (!IsFloat(type.dtype)) return RandomContents(type, random, /*positive=*/true);
  std::string contents = RandomContents({DType::kFloat64, type.shape}, random, /*positive=*/true);
  for (int64_t i = 0; i < type.elements(); ++i) {
    double x;
    std::memcpy(&x, contents.data() + i * 8, 8);
    if (values == Values::kAboveOne) x += 1;
    if (values == Values::kBelowOne) x = x / 2.5 * (i % 2 == 0 ? 1 : -1);
    std::memcpy(contents.data() + i * 8, &x, 8);
  }
  return Converted(contents, type);
}

MakeCase Unary(const std::string& op, DrawType draw_type = AnyFloat, Values values = Values::kAny,
               bool to_bool = false) {
  return [=](Random& random) {
    KernelCase c = Named("", op);
    const TensorType type{draw_type(random), AnyShape(random)};
    c.spec.inputs.push_back({type});
    c.inputs.push_back(Within(type, values, random));
    c.spec.outputs.push_back({{to_bool ? DType::kBool : type.dtype, type.shape}});
    if (!to_bool && Draw(random, 0, 1)) c.in_place = {0};
    return c;
  };
}

// With infinities and NaNs.
MakeCase Odd(const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Unary(op, AnyFloat, Values::kAny, true)(random);
    const TensorType type = c.spec.inputs[0].type;
    std::string contents(type.elements() * 8, '\0');
    for (int64_t i = 0; i < type.elements(); ++i) {
      constexpr double kValues[] = {INFINITY, -INFINITY, NAN, 0, 1.5};
      std::memcpy(contents.data() + i * 8, &kValues[Draw(random, 0, 4)], 8);
    }
    c.inputs[0] = Converted(contents, type);
    if (Draw(random, 0, 2) == 0) c.spec.attributes.Set("detect_positive", int64_t{0});
    if (Draw(random, 0, 2) == 0) c.spec.attributes.Set("detect_negative", int64_t{0});
    return c;
  };
}

MakeCase Gelu(const std::string& domain, const std::string& op, int inputs) {
  return [=](Random& random) {
    KernelCase c = Named(domain, op);
    const TensorType type{AnyFloat(random), AnyShape(random)};
    for (int k = 0; k < inputs; ++k) AddInput(c, type, random);
    c.spec.outputs.push_back({type});
    if (Draw(random, 0, 1)) c.spec.attributes.Set("approximate", std::string("tanh"));
    c.in_place = {static_cast<int>(Draw(random, -1, inputs - 1))};
    return c;
  };
}

MakeCase ActivationGrad(const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Named("ai.pipec", op);
    const TensorType type{AnyFloat(random), AnyShape(random)};
    AddInput(c, type, random);
    AddInput(c, type, random);
    c.spec.outputs.push_back({type});
    c.in_place = {static_cast<int>(Draw(random, -1, 1))};
    return c;
  };
}

// `operands` of one type, which broadcast together.
KernelCase Broadcasting(const std::string& op, DType dtype, int operands, bool to_bool, bool positive,
                        Random& random) {
  KernelCase c = Named("", op);
  const Shape shape = AnyShape(random);
  std::vector<Shape> shapes(operands, shape);
  if (Draw(random, 0, 3) != 0) {
    for (Shape& own : shapes) own = Narrowed(shape, random);
  }
  for (const Shape& own : shapes) AddInput(c, {dtype, own}, random, positive);
  c.spec.outputs.push_back({{to_bool ? DType::kBool : dtype, Together(shapes)}});
  if (!to_bool && shapes[0] == c.spec.outputs[0].type.shape && Draw(random, 0, 1)) c.in_place = {0};
  return c;
}

MakeCase Binary(const std::string& op, DrawType draw_type = AnyNumber, bool to_bool = false,
                bool positive = false) {
  return [=](Random& random) { return Broadcasting(op, draw_type(random), 2, to_bool, positive, random); };
}

KernelCase Mod(Random& random) {
  const DType dtype = AnyNumber(random);
  KernelCase c = Broadcasting("Mod", dtype, 2, false, true, random);
  // Of floats the rest may jump by the divisor where a quotient is nearly whole: no such ones.
  if (IsFloat(dtype) || Draw(random, 0, 1)) c.spec.attributes.Set("fmod", int64_t{1});
  return c;
}

MakeCase Variadic(const std::string& op, DrawType draw_type) {
  return [=](Random& random) {
    return Broadcasting(op, draw_type(random), static_cast<int>(Draw(random, 1, 5)), false, false, random);
  };
}

KernelCase Pow(Random& random) {
  KernelCase c = Named("", "Pow");
  constexpr DType kBases[] = {DType::kFloat32,  DType::kFloat64, DType::kFloat16,
                              DType::kBFloat16, DType::kInt64,   DType::kInt32};
  constexpr DType kExponents[] = {DType::kFloat32, DType::kInt64, DType::kInt32};
  const DType base = kBases[Draw(random, 0, 5)],
              exponent = Draw(random, 0, 1) ? base : kExponents[Draw(random, 0, 2)];
  const Shape shape = AnyShape(random), own = Narrowed(shape, random);
  AddInput(c, {base, shape}, random, true);
  if (Draw(random, 0, 3) == 0 && IsFloat(base)) {
    c.spec.inputs.push_back({{base, {}}});
    const double two = 2;
    c.inputs.push_back(Converted(std::string(reinterpret_cast<const char*>(&two), 8), {base, {}}));
    c.constants = {1};
  } else if (IsFloat(exponent)) {
    AddInput(c, {exponent, own}, random, !IsFloat(base));
  } else {
    // Small ones: integers wrap around, floats would overflow.
    c.spec.inputs.push_back({{exponent, own}});
    std::string contents(c.spec.inputs[1].type.bytes(), '\0');
    for (int64_t i = 0; i < c.spec.inputs[1].type.elements(); ++i) {
      const int64_t value = Draw(random, -2, 3);
      std::memcpy(contents.data() + i * SizeOf(exponent), &value, SizeOf(exponent));
    }
    c.inputs.push_back(contents);
  }
  c.spec.outputs.push_back({{base, Together({shape, c.spec.inputs[1].type.shape})}});
  return c;
}

KernelCase Where(Random& random) {
  KernelCase c = Named("", "Where");
  const DType dtype = AnyType(random);
  const Shape shape = AnyShape(random);
  std::vector<Shape> shapes(3, shape);
  if (Draw(random, 0, 3) != 0) {
    for (Shape& own : shapes) own = Narrowed(shape, random);
  }
  AddInput(c, {DType::kBool, shapes[0]}, random);
  AddInput(c, {dtype, shapes[1]}, random);
  AddInput(c, {dtype, shapes[2]}, random);
  c.spec.outputs.push_back({{dtype, Together(shapes)}});
  return c;
}

KernelCase Cast(Random& random) {
  KernelCase c = Named("", "Cast");
  const auto draw = [&] {
    DType dtype = AnyType(random);
    return dtype == DType::kInt16 ? DType::kInt32 : dtype;
  };
  const TensorType type{draw(), AnyShape(random)};
  AddInput(c, type, random);
  const DType to = draw();
  c.spec.attributes.Set("to", static_cast<int64_t>(to));
  c.spec.outputs.push_back({{to, type.shape}});
  return c;
}

}  // namespace

void AddPointwiseCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases) {
  for (const char* op : {"Atan", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "Round", "Sigmoid", "Sin",
                         "Sinh", "Asinh", "Tanh"}) {
    cases[{"", op}] = Unary(op);
  }
  for (const char* op : {"Abs", "Sign"}) cases[{"", op}] = Unary(op, AnyNumber);
  for (const char* op : {"Neg", "Relu"}) cases[{"", op}] = Unary(op, SignedNumber);
  for (const char* op : {"Log", "Reciprocal", "Sqrt"})
    cases[{"", op}] = Unary(op, AnyFloat, Values::kPositive);
  for (const char* op : {"Acos", "Asin", "Atanh", "Tan"})
    cases[{"", op}] = Unary(op, AnyFloat, Values::kBelowOne);
  cases[{"", "Acosh"}] = Unary("Acosh", AnyFloat, Values::kAboveOne);
  cases[{"", "Not"}] = Unary("Not", Bool);
  for (const char* op : {"IsNaN", "IsInf"}) cases[{"", op}] = Odd(op);
  cases[{"", "Gelu"}] = Gelu("", "Gelu", 1);
  cases[{"ai.pipec", "GeluGrad"}] = Gelu("ai.pipec", "GeluGrad", 2);
  for (const char* op : {"ReluGrad", "SigmoidGrad", "TanhGrad"}) cases[{"ai.pipec", op}] = ActivationGrad(op);
  for (const char* op : {"Add", "Mul", "Sub"}) cases[{"", op}] = Binary(op);
  cases[{"", "Div"}] = Binary("Div", AnyNumber, false, true);
  cases[{"", "Mod"}] = Mod;
  cases[{"", "Pow"}] = Pow;
  for (const char* op : {"Max", "Min"}) cases[{"", op}] = Variadic(op, AnyNumber);
  for (const char* op : {"Mean", "Sum"}) cases[{"", op}] = Variadic(op, AnyFloat);
  for (const char* op : {"Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
    cases[{"", op}] = Binary(op, AnyNumber, true);
  cases[{"", "Equal"}] = Binary("Equal", NumberOrBool, true);
  for (const char* op : {"And", "Or", "Xor"}) cases[{"", op}] = Binary(op, Bool, true);
  cases[{"", "Where"}] = Where;
  cases[{"", "Cast"}] = Cast;
}

}  // namespace pipec
