// MatMulInteger (A, B, zero point of A?, of B?) -> (int32 Y) and QLinearMatMul
// (a, scale, zero point, b, scale, zero point, scale and zero point of y) ->
// (y). Both multiply what is left of the bytes when the zero points are taken
// off, in int32.
#include <algorithm>

#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/matrix_product.h"
#include "runtime/device/cpu/kernels/quantized.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

// The product of operands `a` and `b` of the instruction, whose zero points are
// a_zero and b_zero: one, or one for each row of A and column of B.
struct IntegerProduct {
  int a = 0, b = 1, a_zero = 2, b_zero = 3;
  DType a_type = DType::kUndefined, b_type = DType::kUndefined;
  int64_t a_elements = 0, b_elements = 0, y_elements = 0, rows = 1, columns = 1, depth = 1;
  int64_t a_zero_step = 0, b_zero_step = 0;
  bool has_a_zero = false, has_b_zero = false;
  Shape y_shape;

  int64_t a_bytes() const { return (a_elements * 4 + 63) / 64 * 64; }
  int64_t b_bytes() const { return (b_elements * 4 + 63) / 64 * 64; }
};

// With the kernel of the int32 product.
absl::StatusOr<std::unique_ptr<Kernel>> Read(const KernelSpec &spec, IntegerProduct &p) {
  KernelSpec wide = spec;
  wide.inputs = {spec.inputs[p.a], spec.inputs[p.b]};
  p.a_type = spec.inputs[p.a].type.dtype, p.b_type = spec.inputs[p.b].type.dtype;
  for (KernelOperand &operand : wide.inputs) operand.type.dtype = DType::kInt32;
  ASSIGN_OR_RETURN(const MatrixProduct product, ProductOf(wide, false, false));
  p.y_shape = ResultShape(wide.inputs[0].type, wide.inputs[1].type, product);
  p.rows = product.m, p.columns = product.n, p.depth = product.k;
  p.a_elements = wide.inputs[0].type.elements(), p.b_elements = wide.inputs[1].type.elements();
  p.y_elements = NumElements(p.y_shape);
  p.has_a_zero = Has(spec, p.a_zero), p.has_b_zero = Has(spec, p.b_zero);
  ASSIGN_OR_RETURN(p.a_zero_step, ParameterStep(spec, p.a_zero, p.a_type, p.rows));
  ASSIGN_OR_RETURN(p.b_zero_step, ParameterStep(spec, p.b_zero, p.b_type, p.columns));
  for (DType dtype : {p.a_type, p.b_type}) {
    if (dtype != DType::kUint8 && dtype != DType::kInt8) return NoKernelFor(spec, dtype);
  }
  return MakeByteProduct(wide, product);
}

template <typename T>
void CentreA(const IntegerProduct &p, const KernelArguments &arguments, int32_t *to) {
  const int64_t batches = p.a_elements / std::max<int64_t>(1, p.rows * p.depth);
  Centre(Input<T>(arguments, p.a), p.has_a_zero ? Input<T>(arguments, p.a_zero) : nullptr, p.a_zero_step,
         batches, p.rows, p.depth, to);
}
template <typename T>
void CentreB(const IntegerProduct &p, const KernelArguments &arguments, int32_t *to) {
  const int64_t batches = p.b_elements / std::max<int64_t>(1, p.depth * p.columns);
  Centre(Input<T>(arguments, p.b), p.has_b_zero ? Input<T>(arguments, p.b_zero) : nullptr, p.b_zero_step,
         batches * p.depth, p.columns, 1, to);
}

// y = the product; the workspace holds both operands and then what the product
// takes.
absl::Status Run(const IntegerProduct &p, Kernel &product, Stream &stream, const KernelArguments &arguments,
                 int32_t *y) {
  auto *const workspace = static_cast<std::byte *>(arguments.workspace);
  auto *const a = reinterpret_cast<int32_t *>(workspace), *const b = reinterpret_cast<int32_t *>(workspace +
                                                                                                 p.a_bytes());
  p.a_type == DType::kUint8 ? CentreA<uint8_t>(p, arguments, a) : CentreA<int8_t>(p, arguments, a);
  p.b_type == DType::kUint8 ? CentreB<uint8_t>(p, arguments, b) : CentreB<int8_t>(p, arguments, b);
  const void *inputs[] = {a, b};
  void *outputs[] = {y};
  return product.Launch(stream, {inputs, outputs, arguments.scalars, workspace + p.a_bytes() + p.b_bytes()});
}

class MatMulIntegerKernel : public Kernel {
 public:
  MatMulIntegerKernel(const IntegerProduct &p, std::unique_ptr<Kernel> product)
      : p_(p), product_(std::move(product)) {}
  int64_t workspace_bytes() const override {
    return p_.a_bytes() + p_.b_bytes() + product_->workspace_bytes();
  }
  absl::Status Launch(Stream &stream, const KernelArguments &arguments) override {
    return Run(p_, *product_, stream, arguments, Output<int32_t>(arguments, 0));
  }

 private:
  const IntegerProduct p_;
  const std::unique_ptr<Kernel> product_;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareMatMulInteger(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 4}));
  IntegerProduct p;
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> product, Read(spec, p));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kInt32, p.y_shape}));
  return std::make_unique<MatMulIntegerKernel>(p, std::move(product));
}

// T: of y. The int32 product lies in front of the workspace.
template <typename T>
class QLinearMatMulKernel : public Kernel {
 public:
  QLinearMatMulKernel(const IntegerProduct &p, std::unique_ptr<Kernel> product, int64_t a_step,
                      int64_t b_step)
      : p_(p), product_(std::move(product)), a_scale_step_(a_step), b_scale_step_(b_step) {}

  int64_t workspace_bytes() const override {
    return y_bytes() + p_.a_bytes() + p_.b_bytes() + product_->workspace_bytes();
  }

  absl::Status Launch(Stream &stream, const KernelArguments &arguments) override {
    auto *const wide = static_cast<int32_t *>(arguments.workspace);
    KernelArguments rest = arguments;
    rest.workspace = static_cast<std::byte *>(arguments.workspace) + y_bytes();
    RETURN_IF_ERROR(Run(p_, *product_, stream, rest, wide));
    const float *const a_scale = Input<float>(arguments, 1), *const b_scale = Input<float>(arguments, 4);
    const float y_scale = *Input<float>(arguments, 6);
    const int32_t y_zero = *Input<T>(arguments, 7);
    T *const y = Output<T>(arguments, 0);
    ParallelFor(p_.y_elements, kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float a = a_scale[i / p_.columns % p_.rows * a_scale_step_],
                    b = b_scale[i % p_.columns * b_scale_step_];
        y[i] = Quantised<T>(static_cast<float>(wide[i]) * (a * b / y_scale), y_zero);
      }
    });
    return absl::OkStatus();
  }

 private:
  int64_t y_bytes() const { return (p_.y_elements * 4 + 63) / 64 * 64; }

  const IntegerProduct p_;
  const std::unique_ptr<Kernel> product_;
  const int64_t a_scale_step_, b_scale_step_;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareQLinearMatMul(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 8, .max_inputs = 8}));
  for (int k : {1, 4, 6}) {
    if (spec.inputs[k].type.dtype != DType::kFloat32) return NoKernelFor(spec, spec.inputs[k].type.dtype);
  }
  IntegerProduct p{.a = 0, .b = 3, .a_zero = 2, .b_zero = 5};
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> product, Read(spec, p));
  ASSIGN_OR_RETURN(const int64_t a_step, ParameterStep(spec, 1, DType::kFloat32, p.rows));
  ASSIGN_OR_RETURN(const int64_t b_step, ParameterStep(spec, 4, DType::kFloat32, p.columns));
  RETURN_IF_ERROR(CheckInputElements(spec, 6, DType::kFloat32, 1));
  const DType dtype = spec.outputs[0].type.dtype;
  RETURN_IF_ERROR(CheckInputElements(spec, 7, dtype, 1));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, p.y_shape}));
  auto kernel = ForType<std::unique_ptr<Kernel>>(Bytes(), dtype, [&](auto t) -> std::unique_ptr<Kernel> {
    using T = typename decltype(t)::type;
    return std::make_unique<QLinearMatMulKernel<T>>(p, std::move(product), a_step, b_step);
  });
  if (kernel == nullptr) return NoKernelFor(spec, dtype);
  return kernel;
}

}  // namespace

void RegisterQuantizedProductKernels(KernelRegistry &registry) {
  registry.Add("MatMulInteger", "", PrepareMatMulInteger);
  registry.Add("QLinearMatMul", "", PrepareQLinearMatMul);
}

}  // namespace pipec::cpu
