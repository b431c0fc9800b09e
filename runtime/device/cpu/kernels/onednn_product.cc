// Matrix products of float32, bfloat16 and float16, summed in float32, by oneDNN's matmul primitive (oneDNN
// developer guide, "MatMul"). Transposed and repeated operands are strides.
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/matrix_product.h"
#include "runtime/device/cpu/kernels/onednn_kernel.h"

namespace pipec::cpu {
namespace {

// batch x rows x columns, row-major or with the last two axes the other way round in memory.
dnnl::memory::desc Matrices(DType dtype, const Shape& batch, int64_t rows, int64_t columns, bool transposed) {
  dnnl::memory::dims dims(batch.begin(), batch.end()), strides(batch.size() + 2);
  dims.push_back(rows);
  dims.push_back(columns);
  const size_t rank = dims.size();
  strides[rank - 2] = transposed ? 1 : columns;
  strides[rank - 1] = transposed ? rows : 1;
  int64_t step = rows * columns;
  for (size_t i = batch.size(); i-- > 0; step *= batch[i]) strides[i] = step;
  return {dims, OneDnnType(dtype), strides};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnProduct(const MatrixProduct& product) {
  return CatchOneDnn([&]() -> absl::StatusOr<std::unique_ptr<Kernel>> {
    dnnl::primitive_attr attributes = OneDnnAttributes();
    if (product.alpha != 1) attributes.set_output_scales(0, {product.alpha});
    dnnl::post_ops after;
    if (product.add) after.append_sum(1);
    if (product.activation == ProductActivation::kGelu)
      after.append_eltwise(1, dnnl::algorithm::eltwise_gelu_tanh, 0, 0);
    attributes.set_post_ops(after);
    const dnnl::memory::desc a =
        Matrices(product.dtype, product.a_batch, product.m, product.k, product.transpose_a);
    const dnnl::memory::desc b =
        Matrices(product.dtype, product.b_batch, product.k, product.n, product.transpose_b);
    const dnnl::memory::desc y = Matrices(product.result, product.y_batch, product.m, product.n, false);
    const dnnl::memory::desc bias =
        Matrices(product.result, Shape(product.y_batch.size(), 1), 1, product.n, false);
    const dnnl::matmul::primitive_desc description(
        product.bias ? dnnl::matmul::desc(a, b, bias, y) : dnnl::matmul::desc(a, b, y), attributes,
        OneDnnEngine());
    RETURN_IF_ERROR(CheckImplementation(product.dtype, description.impl_info_str()));
    std::vector<OneDnnArgument> arguments = {
        {DNNL_ARG_SRC, false, 0, a}, {DNNL_ARG_WEIGHTS, false, 1, b}, {DNNL_ARG_DST, true, 0, y}};
    if (product.bias) arguments.push_back({DNNL_ARG_BIAS, false, 2, bias});
    return MakeOneDnnKernel(dnnl::matmul(description), description.scratchpad_desc(), std::move(arguments));
  });
}

}  // namespace pipec::cpu
