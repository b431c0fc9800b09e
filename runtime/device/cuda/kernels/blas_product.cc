#include "runtime/device/cuda/kernels/blas_product.h"

#include <cublasLt.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/owned_handle.h"

namespace pipec::cuda {
namespace {

constexpr uint64_t kMostWorkspace = uint64_t{32} << 20;
constexpr uint32_t kWide = 16;  // bytes: what the arena's tensors are aligned to, if they are no views

absl::Status BlasStatus(cublasStatus_t status, absl::string_view call) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const absl::StatusCode code = status == CUBLAS_STATUS_NOT_SUPPORTED  ? absl::StatusCode::kUnimplemented
                                : status == CUBLAS_STATUS_ALLOC_FAILED ? absl::StatusCode::kResourceExhausted
                                                                       : absl::StatusCode::kInternal;
  return absl::Status(code, absl::StrCat(call, ": ", cublasLtGetStatusString(status)));
}

#define RETURN_IF_BLAS_ERROR(call) RETURN_IF_ERROR(BlasStatus(call, #call))

using Descriptor = OwnedHandle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = OwnedHandle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = OwnedHandle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

std::optional<cudaDataType_t> TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CUDA_R_32F;
    case DType::kFloat64:
      return CUDA_R_64F;
    case DType::kFloat16:
      return CUDA_R_16F;
    case DType::kBFloat16:
      return CUDA_R_16BF;
    default:
      return std::nullopt;
  }
}

// A column-major matrix, once or many times.
absl::Status MakeLayout(Layout& layout, cudaDataType_t type, int64_t rows, int64_t columns, int64_t batches,
                        int64_t step) {
  RETURN_IF_BLAS_ERROR(cublasLtMatrixLayoutCreate(&layout, type, rows, columns, rows));
  const auto count = static_cast<int32_t>(batches);
  RETURN_IF_BLAS_ERROR(
      cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
  RETURN_IF_BLAS_ERROR(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                        &step, sizeof step));
  return absl::OkStatus();
}

// A's and B's names change places, as the operands do.
cublasLtEpilogue_t NameOf(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kSumOfA:
      return CUBLASLT_EPILOGUE_BGRADB;
    case Epilogue::kSumOfB:
      return CUBLASLT_EPILOGUE_BGRADA;
    case Epilogue::kGelu:
      return CUBLASLT_EPILOGUE_GELU;
    case Epilogue::kGeluBias:
      return CUBLASLT_EPILOGUE_GELU_BIAS;
    case Epilogue::kGeluGrad:
      return CUBLASLT_EPILOGUE_DGELU;
    default:
      return CUBLASLT_EPILOGUE_DEFAULT;
  }
}

// Whether the epilogue has an operand: a vector, or the matrix of kGeluGrad, which cuBLASLt calls auxiliary.
bool HasOperand(Epilogue epilogue) { return epilogue != Epilogue::kNone && epilogue != Epilogue::kGelu; }

// cuBLASLt's matrices are column-major: what lies row-major is the transposed, so that it computes Y^T = B^T A^T.
// One batch axis is its own, the others are loops here.
class LtProduct : public BlasProduct {
 public:
  LtProduct(const MatrixProduct& product, Epilogue epilogue, cublasLtContext* blas)
      : product_(product), epilogue_(epilogue), blas_(blas) {}

  absl::Status Prepare(const KernelSpec& spec) {
    const std::optional<cudaDataType_t> type = TypeOf(product_.dtype), result = TypeOf(product_.result);
    if (!type || !result) {
      return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op,
                                                   "): the CUDA device multiplies floats, not ",
                                                   Name(product_.dtype)));
    }
    const bool doubles = *type == CUDA_R_64F;
    RETURN_IF_BLAS_ERROR(cublasLtMatmulDescCreate(
        &descriptor_, doubles ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, doubles ? CUDA_R_64F : CUDA_R_32F));
    const cublasOperation_t first = product_.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                            second = product_.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    RETURN_IF_BLAS_ERROR(
        cublasLtMatmulDescSetAttribute(descriptor_, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first));
    RETURN_IF_BLAS_ERROR(
        cublasLtMatmulDescSetAttribute(descriptor_, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second));
    if (epilogue_ != Epilogue::kNone) {
      if (doubles) return absl::UnimplementedError("cuBLASLt has no epilogues of float64");
      const cublasLtEpilogue_t name = NameOf(epilogue_);
      RETURN_IF_BLAS_ERROR(
          cublasLtMatmulDescSetAttribute(descriptor_, CUBLASLT_MATMUL_DESC_EPILOGUE, &name, sizeof name));
    }
    if (epilogue_ == Epilogue::kGeluGrad) {
      const int64_t lead = product_.n;
      if (lead % 8 != 0) return absl::UnimplementedError("cuBLASLt wants rows of a multiple of 8 elements");
      RETURN_IF_BLAS_ERROR(cublasLtMatmulDescSetAttribute(descriptor_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
                                                          &lead, sizeof lead));
    }
    PlaceBatches();
    const int64_t m = product_.m, n = product_.n, k = product_.k;
    RETURN_IF_ERROR(MakeLayout(b_, *type, product_.transpose_b ? k : n, product_.transpose_b ? n : k,
                               own_batches_, own_b_step_));
    RETURN_IF_ERROR(MakeLayout(a_, *type, product_.transpose_a ? m : k, product_.transpose_a ? k : m,
                               own_batches_, own_a_step_));
    RETURN_IF_ERROR(MakeLayout(y_, *result, n, m, own_batches_, m * n));
    ASSIGN_OR_RETURN(wide_, Choose(spec, kWide));
    const absl::StatusOr<cublasLtMatmulHeuristicResult_t> narrow =
        Choose(spec, static_cast<uint32_t>(SizeOf(product_.dtype)));
    aligned_only_ = epilogue_ != Epilogue::kNone && absl::IsUnimplemented(narrow.status());
    if (aligned_only_) return absl::OkStatus();
    ASSIGN_OR_RETURN(narrow_, narrow);
    return absl::OkStatus();
  }

  int64_t workspace_bytes() const override {
    return static_cast<int64_t>(std::max(wide_.workspaceSize, narrow_.workspaceSize));
  }

  bool aligned_only() const override { return aligned_only_; }
  bool Aligned(const void* a, const void* b, const void* y, const void* operand) const override {
    return IsWide(a) && IsWide(b) && IsWide(y) && IsWide(operand);
  }

  absl::Status Run(cudaStream_t stream, const void* a, const void* b, void* y, void* workspace,
                   const void* operand) override {
    const int64_t size = SizeOf(product_.dtype), result_size = SizeOf(product_.result);
    const float alpha = product_.alpha, beta = product_.add ? 1 : 0;
    const double wide_alpha = alpha, wide_beta = beta;
    const bool doubles = product_.dtype == DType::kFloat64;
    if (HasOperand(epilogue_)) RETURN_IF_ERROR(SetOperand(operand));
    for (size_t i = 0; i < a_offsets_.size(); ++i) {
      const auto* const from_a = static_cast<const std::byte*>(a) + a_offsets_[i] * size;
      const auto* const from_b = static_cast<const std::byte*>(b) + b_offsets_[i] * size;
      auto* const to = static_cast<std::byte*>(y) +
                       static_cast<int64_t>(i) * own_batches_ * product_.m * product_.n * result_size;
      const cublasLtMatmulHeuristicResult_t& chosen = Aligned(from_a, from_b, to, operand) ? wide_ : narrow_;
      RETURN_IF_ERROR(BlasStatus(
          cublasLtMatmul(blas_, descriptor_, doubles ? static_cast<const void*>(&wide_alpha) : &alpha, from_b,
                         b_, from_a, a_, doubles ? static_cast<const void*>(&wide_beta) : &beta, to, y_, to,
                         y_, &chosen.algo, workspace, chosen.workspaceSize, stream),
          "cublasLtMatmul"));
    }
    return absl::OkStatus();
  }

 private:
  static bool IsWide(const void* address) { return reinterpret_cast<uintptr_t>(address) % kWide == 0; }

  // The last batch axis is cuBLASLt's; where the operands' matrices begin for each place of the others.
  void PlaceBatches() {
    const size_t rank = product_.y_batch.size();
    int64_t a_step = product_.m * product_.k, b_step = product_.k * product_.n;
    a_offsets_ = b_offsets_ = {0};
    for (size_t i = rank; i-- > 0;) {
      const int64_t size = product_.y_batch[i];
      const int64_t a_own = product_.a_batch[i] == 1 ? 0 : a_step,
                    b_own = product_.b_batch[i] == 1 ? 0 : b_step;
      if (i + 1 == rank) {
        own_batches_ = size, own_a_step_ = a_own, own_b_step_ = b_own;
      } else {
        std::vector<int64_t> a_next, b_next;
        for (int64_t at = 0; at < size; ++at) {
          for (int64_t offset : a_offsets_) a_next.push_back(offset + at * a_own);
          for (int64_t offset : b_offsets_) b_next.push_back(offset + at * b_own);
        }
        a_offsets_ = std::move(a_next), b_offsets_ = std::move(b_next);
      }
      a_step *= product_.a_batch[i], b_step *= product_.b_batch[i];
    }
  }

  absl::Status SetOperand(const void* operand) {
    const cublasLtMatmulDescAttributes_t name = epilogue_ == Epilogue::kGeluGrad
                                                    ? CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER
                                                    : CUBLASLT_MATMUL_DESC_BIAS_POINTER;
    RETURN_IF_BLAS_ERROR(cublasLtMatmulDescSetAttribute(descriptor_, name, &operand, sizeof operand));
    return absl::OkStatus();
  }

  absl::StatusOr<cublasLtMatmulHeuristicResult_t> Choose(const KernelSpec& spec, uint32_t alignment) {
    // The heuristic asks the operand's address for its alignment.
    if (HasOperand(epilogue_))
      RETURN_IF_ERROR(SetOperand(reinterpret_cast<const void*>(uintptr_t{alignment})));
    Preference preference;
    RETURN_IF_BLAS_ERROR(cublasLtMatmulPreferenceCreate(&preference));
    RETURN_IF_BLAS_ERROR(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kMostWorkspace, sizeof kMostWorkspace));
    for (cublasLtMatmulPreferenceAttributes_t operand :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      RETURN_IF_BLAS_ERROR(
          cublasLtMatmulPreferenceSetAttribute(preference, operand, &alignment, sizeof alignment));
    }
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(blas_, descriptor_, b_, a_, y_, y_, preference, 1, &result, &found);
    // What it has no epilogue for, it may call invalid.
    const bool none = epilogue_ != Epilogue::kNone && status == CUBLAS_STATUS_INVALID_VALUE;
    if (!none) RETURN_IF_ERROR(BlasStatus(status, "cublasLtMatmulAlgoGetHeuristic"));
    if (none || found == 0) {
      return absl::UnimplementedError(absl::StrCat(
          "node '", spec.name, "' (", spec.op, "): cuBLASLt has no algorithm for ", product_.m, " x ",
          product_.k, " by ", product_.k, " x ", product_.n, " of ", Name(product_.dtype)));
    }
    return result;
  }

  const MatrixProduct product_;
  const Epilogue epilogue_;
  cublasLtContext* const blas_;
  Descriptor descriptor_;
  Layout a_, b_, y_;
  int64_t own_batches_ = 1, own_a_step_ = 0, own_b_step_ = 0;
  std::vector<int64_t> a_offsets_, b_offsets_;  // elements
  cublasLtMatmulHeuristicResult_t wide_{}, narrow_{};
  bool aligned_only_ = false;  // narrow_ is none
};

}  // namespace

absl::StatusOr<std::shared_ptr<BlasProduct>> BlasProduct::Create(const KernelSpec& spec,
                                                                 const MatrixProduct& product,
                                                                 Epilogue epilogue, CudaContext& context) {
  ASSIGN_OR_RETURN(cublasLtContext* const blas, context.blas());
  auto made = std::make_shared<LtProduct>(product, epilogue, blas);
  RETURN_IF_ERROR(made->Prepare(spec));
  return made;
}

}  // namespace pipec::cuda
