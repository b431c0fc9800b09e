// Matrix products of float32 by oneDNN's matmul primitive (oneDNN developer guide, "MatMul"). Transposed and
// repeated operands are strides; the primitive is made at load and works in the rank's workspace.
#include <array>
#include <memory>

#include "absl/strings/str_cat.h"
#include "dnnl.hpp"
#include "runtime/device/cpu/kernels/matrix_product.h"

namespace pipec::cpu {
namespace {

dnnl::engine& Engine() {
  static auto* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

// batch x rows x columns, row-major or with the last two axes the other way round in memory.
dnnl::memory::desc Matrices(const Shape& batch, int64_t rows, int64_t columns, bool transposed) {
  dnnl::memory::dims dims(batch.begin(), batch.end()), strides(batch.size() + 2);
  dims.push_back(rows);
  dims.push_back(columns);
  const size_t rank = dims.size();
  strides[rank - 2] = transposed ? 1 : columns;
  strides[rank - 1] = transposed ? rows : 1;
  int64_t step = rows * columns;
  for (size_t i = batch.size(); i-- > 0; step *= batch[i]) strides[i] = step;
  return {dims, dnnl::memory::data_type::f32, strides};
}

class OneDnnProduct : public Kernel {
 public:
  explicit OneDnnProduct(const MatrixProduct& product) : stream_(Engine()) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (product.alpha != 1) attributes.set_output_scales(0, {product.alpha});
    if (product.add) {
      dnnl::post_ops sum;
      sum.append_sum(1);
      attributes.set_post_ops(sum);
    }
    const dnnl::matmul::primitive_desc description(
        dnnl::matmul::desc(Matrices(product.a_batch, product.m, product.k, product.transpose_a),
                           Matrices(product.b_batch, product.k, product.n, product.transpose_b),
                           Matrices(product.y_batch, product.m, product.n, false)),
        attributes, Engine());
    primitive_ = dnnl::matmul(description);
    workspace_bytes_ = static_cast<int64_t>(description.scratchpad_desc().get_size());
    memories_ = {dnnl::memory(description.src_desc(), Engine(), DNNL_MEMORY_NONE),
                 dnnl::memory(description.weights_desc(), Engine(), DNNL_MEMORY_NONE),
                 dnnl::memory(description.dst_desc(), Engine(), DNNL_MEMORY_NONE),
                 dnnl::memory(description.scratchpad_desc(), Engine(), DNNL_MEMORY_NONE)};
    constexpr std::array<int, 4> kNames = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    for (int i = 0; i < 4; ++i) arguments_[i] = {kNames[i], memories_[i].get()};
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  // Through the C functions: the C++ ones put the arguments into containers on the heap.
  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    void* const addresses[] = {const_cast<void*>(arguments.inputs[0]), const_cast<void*>(arguments.inputs[1]),
                               arguments.outputs[0], arguments.workspace};
    for (int i = 0; i < 4; ++i) {
      if (i == 3 && workspace_bytes_ == 0) continue;
      dnnl_memory_set_data_handle_v2(arguments_[i].memory, addresses[i], stream_.get());
    }
    const dnnl_status_t status = dnnl_primitive_execute(
        primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
    if (status == dnnl_success) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("oneDNN's matmul failed with status ", static_cast<int>(status)));
  }

 private:
  dnnl::stream stream_;
  dnnl::matmul primitive_;
  std::array<dnnl::memory, 4> memories_;  // what arguments_ point at
  std::array<dnnl_exec_arg_t, 4> arguments_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnProduct(const MatrixProduct& product) {
  try {
    return std::make_unique<OneDnnProduct>(product);
  } catch (const dnnl::error& error) {
    return absl::UnimplementedError(absl::StrCat("oneDNN makes no matmul of this: ", error.what()));
  }
}

}  // namespace pipec::cpu
