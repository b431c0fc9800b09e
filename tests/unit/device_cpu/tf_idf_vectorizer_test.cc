// TfIdfVectorizer against counts made by looking at every n-gram of the pool in every place.
#include "tests/unit/device_cpu/kernel_call.h"

namespace pipec {
namespace {

using Ints = std::vector<int64_t>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Unigrams 2, 3, 5, 4 and bigrams 5 6, 7 8, 6 7, which ONNX's own example has.
KernelCall Example(absl::string_view mode, int64_t shortest, int64_t longest, int64_t skip) {
  KernelCall call("TfIdfVectorizer", "");
  call.Attr("mode", std::string(mode))
      .Attr("min_gram_length", shortest)
      .Attr("max_gram_length", longest)
      .Attr("max_skip_count", skip)
      .Attr("ngram_counts", Ints{0, 4})
      .Attr("ngram_indexes", Ints{0, 1, 2, 3, 4, 5, 6})
      .Attr("pool_int64s", Ints{2, 3, 5, 4, 5, 6, 7, 8, 6, 7});
  return call;
}

const std::vector<double> kText = {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8};

TEST(TfIdfVectorizer, TheModesDifferInCountsAndWeights) {
  const auto run = [](absl::string_view mode, bool weights) {
    KernelCall call = Example(mode, 1, 2, 5);
    if (weights) call.Attr("weights", std::vector<float>{1, 10, 100, 1000, 0.5f, -2, 4});
    return call.In(Make(DType::kInt64, {12}, kText)).Out(DType::kFloat32, {7}).Get();
  };
  // 5 6 side by side; 7 8 side by side, 4 and 6 places apart counts too (7 at 5 and 8, 8 at 6 and 11); 6 7
  // side by side.
  const std::vector<double> counts = {0, 3, 1, 0, 1, 3, 1};
  EXPECT_EQ(run("TF", false), counts);
  EXPECT_EQ(run("TF", true), counts) << "TF has no weights";
  EXPECT_THAT(run("IDF", false), ElementsAre(0, 1, 1, 0, 1, 1, 1));
  EXPECT_THAT(run("IDF", true), ElementsAre(0, 10, 100, 0, 0.5, -2, 4));
  EXPECT_EQ(run("TFIDF", false), counts);
  EXPECT_THAT(run("TFIDF", true), ElementsAre(0, 30, 100, 0, 0.5, -6, 4));
}

// The definition, word for word: every n-gram, every distance, every place.
std::vector<double> Counts(const std::vector<std::vector<int64_t>>& ngrams, const Ints& columns,
                           const std::vector<double>& x, int64_t skip, int64_t width) {
  std::vector<double> counts(width, 0);
  for (size_t k = 0; k < ngrams.size(); ++k) {
    const int64_t n = ngrams[k].size();
    for (int64_t distance = 1; distance <= (n == 1 ? 1 : skip + 1); ++distance) {
      for (int64_t begin = 0; begin + (n - 1) * distance < static_cast<int64_t>(x.size()); ++begin) {
        bool same = true;
        for (int64_t i = 0; i < n; ++i) same &= x[begin + i * distance] == ngrams[k][i];
        counts[columns[k]] += same;
      }
    }
  }
  return counts;
}

TEST(TfIdfVectorizer, RowsOfRandomNumbers) {
  std::mt19937 random(7);
  for (DType dtype : {DType::kInt32, DType::kInt64}) {
    for (int repeat = 0; repeat < 40; ++repeat) {
      const auto draw = [&](int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random);
      };
      // Bigrams and trigrams that begin alike, in columns that are mixed and shared; an n-gram of 4 numbers
      // is too long.
      const std::vector<std::vector<int64_t>> ngrams = {{0},    {2},       {0, 1},    {1, 0},
                                                        {1, 1}, {0, 1, 0}, {0, 1, 2}, {2, 2, 2}};
      const Ints pool = {0, 2, 0, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1, 2, 2, 2, 2, 0, 0, 0, 0};
      const Ints columns = {7, 0, 3, 3, 5, 1, 2, 6, 4};
      const int64_t rows = draw(1, 5), length = draw(0, 12), skip = draw(0, 3);
      std::vector<double> x(rows * length), wanted;
      for (double& value : x) value = static_cast<double>(draw(-1, 2));
      for (int64_t row = 0; row < rows; ++row) {
        const std::vector<double> part(x.begin() + row * length, x.begin() + (row + 1) * length);
        const std::vector<double> counts = Counts(ngrams, columns, part, skip, 8);
        wanted.insert(wanted.end(), counts.begin(), counts.end());
      }
      EXPECT_EQ(KernelCall("TfIdfVectorizer", "")
                    .Attr("mode", std::string("TF"))
                    .Attr("min_gram_length", int64_t{1})
                    .Attr("max_gram_length", int64_t{3})
                    .Attr("max_skip_count", skip)
                    .Attr("ngram_counts", Ints{0, 2, 8, 17})
                    .Attr("ngram_indexes", columns)
                    .Attr("pool_int64s", pool)
                    .Threads(1 + repeat % 3)
                    .In(Make(dtype, {rows, length}, x))
                    .Out(DType::kFloat32, {rows, 8})
                    .Get(),
                wanted);
    }
  }
}

TEST(TfIdfVectorizer, RefusesPoolsThatDoNotFit) {
  const auto error = [](absl::string_view attribute, Attribute value) {
    return Example("TFIDF", 1, 2, 0)
        .Attr(attribute, std::move(value))
        .In(Make(DType::kInt64, {12}, kText))
        .Out(DType::kFloat32, {7})
        .Error();
  };
  EXPECT_THAT(error("pool_strings", std::vector<std::string>{"a"}),
              HasSubstr("pool_strings are not supported; number the strings"));
  EXPECT_THAT(error("mode", std::string("tf")), HasSubstr("mode is 'tf', wanted TF, IDF or TFIDF"));
  EXPECT_THAT(error("ngram_counts", Ints{0, 5}),
              HasSubstr("do not cut a pool of 10 numbers into n-grams of 2"));
  EXPECT_THAT(error("ngram_counts", Ints{2, 4}), HasSubstr("do not cut a pool"));
  EXPECT_THAT(error("ngram_indexes", Ints{0, 1}),
              HasSubstr("ngram_indexes has 2 numbers, the pool has 7 n-grams"));
  EXPECT_THAT(error("ngram_indexes", Ints{0, 1, 2, 3, 4, 5, 7}), HasSubstr("column 7, the result has 7"));
  EXPECT_THAT(error("ngram_indexes", Ints{0, 1, 2, 3, 4, 5, -1}), HasSubstr("column -1"));
  EXPECT_THAT(error("max_gram_length", int64_t{3}), HasSubstr("n-grams of up to 2 numbers"));
  EXPECT_THAT(error("max_skip_count", int64_t{-1}), HasSubstr("max_skip_count -1"));
  EXPECT_THAT(error("weights", std::vector<float>{1, 2}), HasSubstr("has 2 weights, but 7 columns"));
  EXPECT_THAT(error("pool_int64s", Ints{2, 2, 5, 4, 5, 6, 7, 8, 6, 7}), HasSubstr("the n-gram at 1 twice"));
}

}  // namespace
}  // namespace pipec
