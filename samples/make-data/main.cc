// make-data: the samples' data sets as files that piperun reads, a training part and an evaluation part.
#include <zlib.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/status.h"
#include "samples/make-data/npz.h"
#include "tools/support/flags.h"
#include "tools/support/written.h"

namespace pipec::samples {
namespace {

// The whole file, gunzipped if it is compressed.
absl::StatusOr<std::string> ReadFile(const std::string& file) {
  gzFile in = gzopen(file.c_str(), "rb");
  if (!in) return absl::NotFoundError(absl::StrCat("cannot open ", file));
  std::string contents;
  char buffer[1 << 16];
  int n = 0;
  while ((n = gzread(in, buffer, sizeof(buffer))) > 0) contents.append(buffer, n);
  gzclose(in);
  if (n < 0) return absl::DataLossError(absl::StrCat("cannot read ", file));
  return contents;
}

struct Digits {
  std::vector<float> pixels;
  std::vector<int64_t> labels;
};

absl::Status WriteDigits(const std::string& file, const Digits& part, bool images) {
  const int64_t rows = static_cast<int64_t>(part.labels.size());
  const std::vector<int64_t> shape =
      images ? std::vector<int64_t>{rows, 1, 8, 8} : std::vector<int64_t>{rows, 64};
  const auto bytes = [](const auto& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  };
  return WriteNpz(file,
                  {{"x", "<f4", shape, bytes(part.pixels)}, {"labels", "<i8", {rows}, bytes(part.labels)}});
}

// Rows of 64 pixels 0..16 and the digit -> x float32 [n, 64], or [n, 1, 8, 8] as images, in 0..1 and labels
// int64 [n]. Rows with index % 5 == 4 are the evaluation part.
absl::Status MakeDigits(const std::string& source, const std::string& train_file,
                        const std::string& eval_file, bool images) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(source));
  Digits train, eval;
  int64_t row = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> cells = absl::StrSplit(line, ',');
    Digits& part = row % 5 == 4 ? eval : train;
    for (size_t k = 0; k < cells.size(); ++k) {
      int value = 0;
      if (cells.size() != 65 || !absl::SimpleAtoi(cells[k], &value)) {
        return absl::DataLossError(
            absl::StrCat(source, ", row ", row, ": wanted 65 whole numbers, got ", cells.size()));
      }
      if (k < 64) {
        part.pixels.push_back(static_cast<float>(value) / 16);
      } else {
        part.labels.push_back(value);
      }
    }
    ++row;
  }
  if (row < 5) return absl::DataLossError(absl::StrCat(source, " has ", row, " rows, too few to be split"));
  RETURN_IF_ERROR(WriteDigits(train_file, train, images));
  return WriteDigits(eval_file, eval, images);
}

// One byte a character: its place among the characters that occur, ascending. The last tenth is the
// evaluation part.
absl::Status MakeText(const std::string& source, const std::string& train_file, const std::string& eval_file,
                      const std::string& vocabulary_file) {
  ASSIGN_OR_RETURN(std::string text, ReadFile(source));
  if (text.size() < 10) return absl::DataLossError(absl::StrCat(source, " has too little text to be split"));
  const std::set<unsigned char> letters(text.begin(), text.end());
  std::vector<int> token(256, 0);
  nlohmann::json vocabulary = nlohmann::json::array();
  for (unsigned char letter : letters) {
    token[letter] = static_cast<int>(vocabulary.size());
    vocabulary.push_back(static_cast<int>(letter));
  }
  for (char& c : text) c = static_cast<char>(token[static_cast<unsigned char>(c)]);
  const size_t cut = text.size() - text.size() / 10;
  RETURN_IF_ERROR(WriteFileAtomically(train_file, absl::string_view(text).substr(0, cut)));
  RETURN_IF_ERROR(WriteFileAtomically(eval_file, absl::string_view(text).substr(cut)));
  return WriteFileAtomically(vocabulary_file, vocabulary.dump() + "\n");
}

int Main(int argc, char** argv) {
  std::string kind, source, train_file, eval_file, vocabulary_file;
  bool images = false;
  FlagTable table("make-data", "digits|text SOURCE -o FILE --eval=FILE [flags]",
                  "turn a sample's data set into files that piperun reads");
  table.Positional("digits|text", &kind);
  table.Positional("SOURCE", &source);
  table.Group("Result");
  table.String("o", "FILE", &train_file, "training part: .npz of digits, .bin tokens (u8) of a text",
               "train.npz or train.bin");
  table.String("eval", "FILE", &eval_file, "evaluation part", "eval.npz or eval.bin");
  table.String("vocabulary", "FILE", &vocabulary_file,
               "text: a JSON array, the byte that each token stands for", "vocabulary.json");
  table.OnOff("images", &images, "digits: samples of 1x8x8, for convolutions, instead of 64 features");
  table.Check([&] {
    return kind == "digits" || kind == "text" ? absl::OkStatus()
                                              : absl::InvalidArgumentError(absl::StrCat(
                                                    "unknown data '", kind, "'; there are digits, text"));
  });
  if (const std::optional<int> exit = table.Parse(argc, argv)) return *exit;

  const bool text = kind == "text";
  if (train_file.empty()) train_file = text ? "train.bin" : "train.npz";
  if (eval_file.empty()) eval_file = text ? "eval.bin" : "eval.npz";
  if (vocabulary_file.empty()) vocabulary_file = "vocabulary.json";
  Written written;
  written.Add(train_file);
  written.Add(eval_file);
  if (text) written.Add(vocabulary_file);
  const absl::Status status = text ? MakeText(source, train_file, eval_file, vocabulary_file)
                                   : MakeDigits(source, train_file, eval_file, images);
  if (!status.ok()) return Refuse("make-data", status);
  std::cerr << written.lines();
  return Done("make-data");
}

}  // namespace
}  // namespace pipec::samples

int main(int argc, char** argv) { return pipec::samples::Main(argc, argv); }
