#include "runtime/device/cuda/kernels/dnn_attention.h"

#include <cudnn.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/cuda/kernels/dnn_attention_graphs.h"
#include "runtime/device/cuda/kernels/dnn_attention_rows.h"
#include "runtime/device/operands/check.h"

namespace pipec::cuda {
namespace {

using Graph = std::shared_ptr<const AttentionGraph>;
using Operands = std::vector<std::pair<DnnGraph::Tensor, const void*>>;

constexpr int64_t kAlignment = 256;  // of cuDNN's workspace
constexpr int64_t kWide = 16;        // of its operands
constexpr int64_t kMostGradient = int64_t{64} << 20;
constexpr float kNothing = -std::numeric_limits<float>::infinity(), kOne = 1;

// Why cuDNN is not asked; "" if it is.
std::string WhyNot(const Attention& a) {
  if (a.dtype != DType::kFloat16 && a.dtype != DType::kBFloat16) return "is not of 16-bit floats";
  if (a.depth % 8 != 0 || a.width % 8 != 0) return "has rows that are no multiples of 16 bytes";
  if (a.mask == Attention::Mask::kNone) return "";
  if (a.mask == Attention::Mask::kChosen) return "has a mask of bools";
  if (a.heads.size() > 2 || a.mask_column_step != 1 || a.columns % 4 != 0)
    return "has a mask of another form";
  return "";
}

// Whether rows that its mask hides whole are to be zeros.
bool HasHiddenRows(const Attention& a) { return a.zero_rows && a.mask != Attention::Mask::kNone; }

// cuDNN's support of the gradient, as cudnn-frontend 1.x knows it; its newest GPUs want other means to repeat.
std::string WhyNoGradient(const Attention& a, int major) {
  if (std::string why = WhyNot(a); !why.empty()) return why;
  if (major != 8 && major != 9) return "is not for sm_80 or sm_90";
  if (cudnnGetVersion() <= 91500) return "is for an older cuDNN, whose last columns may be wrong";
  const int64_t deepest = major == 8 ? 128 : 256;
  if (a.depth > deepest || a.width > deepest) return "has rows that are too deep";
  if (a.rows == 1 && a.columns == 1) return "has one row and one column";
  if (AttentionGradBytes(a, 1) > kMostGradient) return "has too many rows and columns";
  return "";
}

absl::Status Refuse(const KernelSpec& spec, absl::string_view why) {
  return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op, ") ", why));
}

AttentionTile AllHeads(const Attention& a) {
  const int64_t heads = a.heads.empty() ? 1 : a.heads.back();
  return {a.head_count() / heads, heads};
}

// The most heads, then samples, that divide all there are and fit.
AttentionTile FittingHeads(const Attention& a) {
  const auto most = [](int64_t all, const auto& fits) {
    int64_t n = all;
    while (n > 1 && (all % n != 0 || !fits(n))) --n;
    return n;
  };
  const AttentionTile all = AllHeads(a);
  const auto fits = [&](int64_t heads) { return AttentionGradBytes(a, heads) <= kMostGradient; };
  const int64_t heads = most(all.heads, fits);
  return {heads < all.heads ? 1 : most(all.batch, [&](int64_t batch) { return fits(batch * heads); }), heads};
}

// All that a graph depends on; the scale is an operand.
std::string KeyOf(absl::string_view kind, const Attention& a, const AttentionTile& tile) {
  std::string key = absl::StrCat(kind, " ", Name(a.dtype), " ", tile.batch, " ", tile.heads, " ", a.rows, " ",
                                 a.columns, " ", a.depth, " ", a.width, a.causal ? " causal" : "");
  if (a.mask == Attention::Mask::kNone) return key;
  absl::StrAppend(&key, " mask", a.mask_row_step != 0 ? " of rows" : "");
  for (const int64_t step : a.mask_steps) absl::StrAppend(&key, step != 0 ? " own" : " same");
  return key;
}

// Layers alike share a graph: to compile one takes cuDNN some tenths of a second.
template <typename Compose>
absl::StatusOr<Graph> SharedGraph(CudaContext& context, const std::string& key, const Compose& compose) {
  std::shared_ptr<const void>& shared = context.Shared(key);
  if (shared == nullptr) {
    ASSIGN_OR_RETURN(shared, compose());
  }
  return std::static_pointer_cast<const AttentionGraph>(shared);
}

// A graph's operands, of which those that it has not are left out.
absl::Status Run(const AttentionGraph& of, cudnnHandle_t dnn, Stream& stream, const float& scale,
                 Operands operands, void* workspace) {
  std::erase_if(operands, [](const auto& operand) { return operand.first == 0; });
  for (const auto& [tensor, address] : operands) {
    if (reinterpret_cast<uintptr_t>(address) % kWide == 0) continue;
    return absl::InternalError(absl::StrCat("an operand of attention lies at ",
                                            reinterpret_cast<uintptr_t>(address), ", cuDNN wants ", kWide,
                                            " bytes of alignment"));
  }
  operands.emplace_back(of.scale, &scale);
  if (of.nothing != 0) operands.emplace_back(of.nothing, &kNothing);
  if (of.one != 0) operands.emplace_back(of.one, &kOne);
  return of.graph.Run(dnn, static_cast<CudaStream&>(stream).get(), operands, workspace);
}

int64_t AlignedFloats(int64_t n) {
  return (n * int64_t{sizeof(float)} + kAlignment - 1) / kAlignment * kAlignment;
}

const std::byte* At(const void* address, int64_t elements, int64_t size) {
  return static_cast<const std::byte*>(address) + elements * size;
}

class DnnAttention : public Kernel {
 public:
  // Logarithms are computed, wanted or not: a graph without them might round otherwise, and of a pass and its
  // recomputation one may want them, the other not.
  DnnAttention(const Attention& a, bool has_logs, cudnnHandle_t dnn, Graph graph)
      : a_(a),
        log_bytes_(has_logs ? 0 : AlignedFloats(a.head_count() * a.rows)),
        dnn_(dnn),
        graph_(std::move(graph)) {}

  int64_t workspace_bytes() const override { return log_bytes_ + graph_->graph.workspace_bytes(); }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    auto* const workspace = static_cast<std::byte*>(arguments.workspace);
    void* const logs = log_bytes_ > 0 ? workspace : arguments.outputs[1];
    const AttentionGraph& of = *graph_;
    RETURN_IF_ERROR(Run(of, dnn_, stream, a_.scale,
                        {{of.q, arguments.inputs[0]},
                         {of.k, arguments.inputs[1]},
                         {of.v, arguments.inputs[2]},
                         {of.mask, of.mask == 0 ? nullptr : arguments.inputs[3]},
                         {of.o, arguments.outputs[0]},
                         {of.logs, logs}},
                        workspace + log_bytes_));
    if (!HasHiddenRows(a_)) return absl::OkStatus();
    return ZeroHiddenRows(static_cast<CudaStream&>(stream).get(), static_cast<const float*>(logs),
                          arguments.outputs[0], a_.head_count() * a_.rows, a_.width * SizeOf(a_.dtype));
  }

 private:
  const Attention a_;
  const int64_t log_bytes_;
  const cudnnHandle_t dnn_;
  const Graph graph_;
};

class DnnAttentionGrad : public Kernel {
 public:
  DnnAttentionGrad(const Attention& a, const AttentionTile& tile, cudnnHandle_t dnn, Graph graph)
      : a_(a), tile_(tile), dnn_(dnn), graph_(std::move(graph)) {}

  int64_t workspace_bytes() const override {
    return LogBytes() + AlongBytes() + graph_->graph.workspace_bytes();
  }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    auto* const workspace = static_cast<std::byte*>(arguments.workspace);
    const AttentionGraph& of = *graph_;
    const void* logs = arguments.inputs[5];
    if (HasHiddenRows(a_)) {
      RETURN_IF_ERROR(LogsOfSeenRows(static_cast<CudaStream&>(stream).get(), static_cast<const float*>(logs),
                                     reinterpret_cast<float*>(workspace), a_.head_count() * a_.rows));
      logs = workspace;
    }
    const int64_t size = SizeOf(a_.dtype), query = a_.rows * a_.depth, key = a_.columns * a_.depth,
                  value = a_.columns * a_.width, result = a_.rows * a_.width;
    for (int64_t head = 0; head < a_.head_count(); head += tile_.count()) {
      const auto input = [&](int k, int64_t elements) {
        return At(arguments.inputs[k], head * elements, size);
      };
      const auto output = [&](int k, int64_t elements) {
        return At(arguments.outputs[k], head * elements, size);
      };
      RETURN_IF_ERROR(
          Run(of, dnn_, stream, a_.scale,
              {{of.d_o, input(0, result)},
               {of.q, input(1, query)},
               {of.k, input(2, key)},
               {of.v, input(3, value)},
               {of.o, input(4, result)},
               {of.logs, At(logs, head * a_.rows, sizeof(float))},
               {of.mask, of.mask == 0 ? nullptr : At(arguments.inputs[6], a_.MaskAt(head), sizeof(float))},
               {of.d_q, output(0, query)},
               {of.d_k, output(1, key)},
               {of.d_v, output(2, value)},
               {of.along, workspace + LogBytes()}},
              workspace + LogBytes() + AlongBytes()));
    }
    return absl::OkStatus();
  }

 private:
  int64_t LogBytes() const { return HasHiddenRows(a_) ? AlignedFloats(a_.head_count() * a_.rows) : 0; }
  int64_t AlongBytes() const { return AlignedFloats(tile_.count() * a_.rows); }

  const Attention a_;
  const AttentionTile tile_;
  const cudnnHandle_t dnn_;
  const Graph graph_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnAttention(const KernelSpec& spec, const Attention& a,
                                                         CudaContext& context) {
  if (const std::string why = WhyNot(a); !why.empty()) return Refuse(spec, why);
  ASSIGN_OR_RETURN(cudnnContext* const dnn, context.dnn());
  const AttentionTile tile = AllHeads(a);
  ASSIGN_OR_RETURN(Graph graph, SharedGraph(context, KeyOf("attention", a, tile),
                                            [&] { return ComposeAttention(a, tile, dnn); }));
  return std::make_unique<DnnAttention>(a, HasOutput(spec, 1), dnn, std::move(graph));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnAttentionGrad(const KernelSpec& spec, const Attention& a,
                                                             CudaContext& context) {
  if (const std::string why = WhyNoGradient(a, context.major()); !why.empty()) return Refuse(spec, why);
  ASSIGN_OR_RETURN(cudnnContext* const dnn, context.dnn());
  const AttentionTile tile = FittingHeads(a);
  if (tile.count() < a.head_count() && tile.count() * a.rows % 4 != 0)
    return Refuse(spec, "has logarithms of some heads that are not aligned");
  ASSIGN_OR_RETURN(Graph graph, SharedGraph(context, KeyOf("attention's gradient", a, tile),
                                            [&] { return ComposeAttentionGrad(a, tile, dnn); }));
  return std::make_unique<DnnAttentionGrad>(a, tile, dnn, std::move(graph));
}

}  // namespace pipec::cuda
