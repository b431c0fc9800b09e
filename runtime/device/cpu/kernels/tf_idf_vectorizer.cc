// TfIdfVectorizer (X) -> (Y): how often each n-gram of a pool occurs in a row of integers. X is [C] or [N,C],
// int32 or int64; Y is [K] or [N,K], float32.
//
// An n-gram's numbers may lie apart by 1, ..., max_skip_count + 1 places, the same distance between any two:
// every distance counts by itself, but for single numbers, which have none. The pool is a tree: its edges are
// numbers, and the node that an n-gram leads to names the column that counts it.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

class NGrams {
 public:
  // -1: nothing in the pool goes on like this.
  int Child(int node, int64_t number) const {
    auto it = children_.find({node, number});
    return it == children_.end() ? -1 : it->second;
  }
  // -1: no n-gram ends here.
  int Column(int node) const { return columns_[node]; }

  // False if the n-gram is there already.
  bool Add(absl::Span<const int64_t> ngram, int column) {
    int node = 0;
    for (int64_t number : ngram) {
      const auto [it, is_new] = children_.try_emplace({node, number}, static_cast<int>(columns_.size()));
      if (is_new) columns_.push_back(-1);
      node = it->second;
    }
    return std::exchange(columns_[node], column) < 0;
  }

 private:
  std::map<std::pair<int, int64_t>, int> children_;
  std::vector<int> columns_ = {-1};  // by node; 0 is the root
};

struct Vectorizer {
  NGrams ngrams;
  int64_t shortest = 1, longest = 1, distances = 1;
  bool counts_once = false;    // IDF: whether there is one, not how many
  std::vector<float> weights;  // by column; none: 1
  int64_t length = 0, columns = 0;
};

template <typename T>
void CountRow(const Vectorizer& v, const T* x, float* y) {
  std::fill(y, y + v.columns, 0.0f);
  for (int64_t distance = 1; distance <= v.distances; ++distance) {
    for (int64_t begin = 0; begin < v.length; ++begin) {
      int node = 0;
      for (int64_t n = 1, at = begin; n <= v.longest && at < v.length; ++n, at += distance) {
        node = v.ngrams.Child(node, x[at]);
        if (node < 0) break;
        const int column = v.ngrams.Column(node);
        if (column >= 0 && (n > 1 || distance == 1)) y[column] += 1;
      }
    }
  }
  for (int64_t k = 0; k < v.columns; ++k) {
    if (v.counts_once) y[k] = std::min(y[k], 1.0f);
    if (!v.weights.empty()) y[k] *= v.weights[k];
  }
}

// Where the n-grams of n numbers, n = 1, 2, ..., begin in the pool; and the pool's end.
absl::StatusOr<std::vector<int64_t>> Levels(const KernelSpec& spec, int64_t pool, int64_t ngrams) {
  std::vector<int64_t> levels = spec.attributes.Ints("ngram_counts");
  levels.push_back(pool);
  int64_t count = 0;
  for (size_t k = 0; k + 1 < levels.size(); ++k) {
    const int64_t numbers = levels[k + 1] - levels[k], n = static_cast<int64_t>(k) + 1;
    if (levels[0] != 0 || numbers < 0 || numbers % n != 0) {
      return Invalid(spec, absl::StrCat("ngram_counts do not cut a pool of ", pool,
                                        " numbers into n-grams of ", n, " numbers"));
    }
    count += numbers / n;
  }
  if (count != ngrams) {
    return Invalid(spec,
                   absl::StrCat("ngram_indexes has ", ngrams, " numbers, the pool has ", count, " n-grams"));
  }
  return levels;
}

absl::Status AddPool(const KernelSpec& spec, Vectorizer& v) {
  const std::vector<int64_t> pool = spec.attributes.Ints("pool_int64s"),
                             columns = spec.attributes.Ints("ngram_indexes");
  ASSIGN_OR_RETURN(const std::vector<int64_t> levels,
                   Levels(spec, static_cast<int64_t>(pool.size()), static_cast<int64_t>(columns.size())));
  if (v.shortest < 1 || v.longest < v.shortest || v.longest >= static_cast<int64_t>(levels.size()) ||
      v.distances < 1) {
    return Invalid(
        spec, absl::StrCat("min_gram_length ", v.shortest, ", max_gram_length ", v.longest,
                           ", max_skip_count ", v.distances - 1, " do not fit a pool of n-grams of up to ",
                           levels.size() - 1, " numbers"));
  }
  size_t ngram = 0;
  for (int64_t n = 1; n < static_cast<int64_t>(levels.size()); ++n) {
    for (int64_t at = levels[n - 1]; at < levels[n]; at += n, ++ngram) {
      const int64_t column = columns[ngram];
      if (column < 0 || column >= v.columns) {
        return Invalid(spec,
                       absl::StrCat("ngram_indexes names column ", column, ", the result has ", v.columns));
      }
      if (n < v.shortest || n > v.longest) continue;
      if (!v.ngrams.Add(absl::MakeConstSpan(pool).subspan(at, n), static_cast<int>(column))) {
        return Invalid(spec, absl::StrCat("the pool has the n-gram at ", at, " twice"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ReadMode(const KernelSpec& spec, Vectorizer& v) {
  const std::string mode = spec.attributes.String("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") {
    return Invalid(spec, absl::StrCat("mode is '", mode, "', wanted TF, IDF or TFIDF"));
  }
  v.counts_once = mode == "IDF";
  if (mode != "TF") v.weights = spec.attributes.Floats("weights");
  if (!v.weights.empty() && static_cast<int64_t>(v.weights.size()) < v.columns) {
    return Invalid(spec, absl::StrCat("has ", v.weights.size(), " weights, but ", v.columns, " columns"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  if (spec.attributes.Has("pool_strings")) {
    return absl::UnimplementedError(
        absl::StrCat("node '", spec.name, "' (", spec.op,
                     "): pool_strings are not supported; number the strings, give the numbers as "
                     "pool_int64s and X as int64"));
  }
  const TensorType& x = spec.inputs[0].type;
  if (x.shape.size() != 1 && x.shape.size() != 2) {
    return Invalid(spec, absl::StrCat("X is ", ToString(x), ", wanted 1 or 2 axes"));
  }
  if (spec.outputs[0].type.shape.empty()) return Invalid(spec, "the result has no columns");
  Vectorizer v{.shortest = spec.attributes.Int("min_gram_length"),
               .longest = spec.attributes.Int("max_gram_length"),
               .distances = spec.attributes.Int("max_skip_count") + 1,
               .length = x.shape.back(),
               .columns = spec.outputs[0].type.shape.back()};
  Shape shape = x.shape;
  shape.back() = v.columns;
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kFloat32, shape}));
  RETURN_IF_ERROR(ReadMode(spec, v));
  RETURN_IF_ERROR(AddPool(spec, v));
  const int64_t rows = x.shape.size() == 2 ? x.shape[0] : 1;
  auto kernel = ForType<std::unique_ptr<Kernel>>(TypeList<int32_t, int64_t>(), x.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    return MakeKernel(0, [v, rows](const KernelArguments& arguments) {
      ParallelFor(rows, 1, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          CountRow(v, Input<T>(arguments, 0) + row * v.length, Output<float>(arguments, 0) + row * v.columns);
        }
      });
      return absl::OkStatus();
    });
  });
  if (kernel == nullptr) return NoKernelFor(spec, x.dtype);
  return kernel;
}

}  // namespace

void RegisterTfIdfVectorizerKernels(KernelRegistry& registry) {
  registry.Add("TfIdfVectorizer", "", Prepare);
}

}  // namespace pipec::cpu
