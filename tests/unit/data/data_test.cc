#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/data/data_source.h"
#include "runtime/data/npy.h"
#include "runtime/data/npz.h"
#include "runtime/data/sample_order.h"
#include "tests/unit/support/scratch.h"

namespace pipec {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Path(const std::string& name) { return testing::ScratchPath(name); }

template <typename T>
HostArray Array(DType dtype, const Shape& shape, const std::vector<T>& values) {
  auto bytes =
      std::make_shared<std::string>(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return {{dtype, shape}, *bytes, bytes};
}

template <typename T>
std::vector<T> ReadAs(const DataSource& data, int input, const std::vector<int64_t>& samples, size_t count) {
  std::vector<T> values(count);
  const absl::Status status = data.Read(input, samples, reinterpret_cast<std::byte*>(values.data()));
  EXPECT_TRUE(status.ok()) << status;
  return values;
}

const DataInput kX{.name = "x", .type = {DType::kFloat32, {2, 3}}};
const DataInput kLabels{.name = "labels", .type = {DType::kInt64, {2}}, .labels = true};

NamedArrays FourSamples() {
  return {{"x", Array<float>(DType::kFloat32, {4, 3}, {0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32})},
          {"labels", Array<uint8_t>(DType::kUint8, {4}, {7, 8, 9, 255})},
          {"surplus", Array<float>(DType::kFloat32, {1}, {0})}};
}

// The three containers hold the same arrays and give the same microbatches; uint8 labels widen; -1 is
// padding.
TEST(Arrays, EveryContainerGivesTheSameSamples) {
  const NamedArrays arrays = FourSamples();
  ASSERT_TRUE(WriteNpz(Path("a.npz"), arrays).ok());
  std::filesystem::create_directories(Path("folder"));
  std::vector<SafetensorsTensor> tensors;
  for (const auto& [name, array] : arrays) {
    std::ofstream(Path("folder") + "/" + name + ".npy", std::ios::binary)
        << *NpyHeader(array.type) << array.bytes;
    tensors.push_back({name, array.type});
  }
  auto writer = SafetensorsWriter::Create(Path("a.safetensors"), tensors);
  ASSERT_TRUE(writer.ok());
  for (const auto& [name, array] : arrays) ASSERT_TRUE(writer->Append(array.bytes).ok());
  ASSERT_TRUE(writer->Finish().ok());
  for (const char* name : {"a.npz", "folder", "a.safetensors"}) {
    const auto data = OpenData(Path(name), {kX, kLabels}, {});
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ((*data)->samples(), 4);
    EXPECT_THAT(ReadAs<float>(**data, 0, {3, 1}, 6), ElementsAre(30, 31, 32, 10, 11, 12));
    EXPECT_THAT(ReadAs<int64_t>(**data, 1, {3, -1}, 2), ElementsAre(255, 0));
  }
}

// Files have no types of less than 8 bits or float8: their bytes are read and written as integers.
TEST(Arrays, TinyTypesAreBytes) {
  const DataInput int4{.name = "i", .type = {DType::kInt4, {2}}};
  const DataInput float8{.name = "f", .type = {DType::kFloat8E4M3FN, {2}}};
  const NamedArrays arrays = {{"i", Array<int8_t>(DType::kInt4, {2}, {-8, 7})},
                              {"f", Array<uint8_t>(DType::kFloat8E4M3FN, {2}, {0x38, 0xff})}};
  ASSERT_TRUE(WriteNpz(Path("a.npz"), arrays).ok());
  const auto data = OpenData(Path("a.npz"), {int4, float8}, {});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(ReadAs<int8_t>(**data, 0, {0, 1}, 2), ElementsAre(-8, 7));
  EXPECT_THAT(ReadAs<uint8_t>(**data, 1, {0, 1}, 2), ElementsAre(0x38, 0xff));
  const auto wrong =
      OpenData(Path("a.npz"), {DataInput{.name = "i", .type = {DType::kUint4, {2}}}, float8}, {});
  EXPECT_FALSE(wrong.ok());
}

// Axis 1 is the batch: sample s is column s.
TEST(Arrays, TheBatchAxisNeedNotBeTheFirst) {
  ASSERT_TRUE(WriteNpz(Path("axis.npz"), {{"x", Array<float>(DType::kFloat32, {2, 3, 1}, {1, 2, 3, 4, 5, 6})},
                                          {"mask", Array<float>(DType::kFloat32, {2}, {8, 9})}})
                  .ok());
  const auto data = OpenData(Path("axis.npz"),
                             {{.name = "x", .type = {DType::kFloat32, {2, 2, 1}}, .batch_axis = 1},
                              {.name = "mask", .type = {DType::kFloat32, {2}}, .batch_axis = -1}},
                             {});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->samples(), 3);
  EXPECT_THAT(ReadAs<float>(**data, 0, {2, 0}, 4), ElementsAre(3, 1, 6, 4));
  EXPECT_THAT(ReadAs<float>(**data, 1, {2, 0}, 2), ElementsAre(8, 9));
}

TEST(Arrays, WhatDoesNotFitIsNamed) {
  ASSERT_TRUE(WriteNpz(Path("bad.npz"), FourSamples()).ok());
  auto message = [](const std::vector<DataInput>& inputs) {
    return std::string(OpenData(Path("bad.npz"), inputs, {}).status().message());
  };
  EXPECT_THAT(message({{.name = "ids", .type = {DType::kInt64, {2}}}}),
              AllOf(HasSubstr("bad.npz"), HasSubstr("'ids'"), HasSubstr("labels, surplus, x")));
  EXPECT_THAT(message({{.name = "x", .type = {DType::kFloat32, {2, 4}}}}),
              AllOf(HasSubstr("float32[4,3]"), HasSubstr("float32[samples,4]")));
  EXPECT_THAT(message({{.name = "x", .type = {DType::kInt64, {2, 3}}}}), HasSubstr("int64[samples,3]"));
  EXPECT_THAT(message({{.name = "labels", .type = {DType::kInt8, {2}}}}), HasSubstr("int8"));
  EXPECT_THAT(message({kX, {.name = "surplus", .type = {DType::kFloat32, {2}}}}),
              HasSubstr("1 sample, 'x' has 4"));
  EXPECT_THAT(std::string(OpenData(Path("none.npz"), {kX}, {}).status().message()), HasSubstr("no data at"));
  std::ofstream(Path("torn.npz")) << "PK not a zip";
  EXPECT_THAT(std::string(OpenData(Path("torn.npz"), {kX}, {}).status().message()), HasSubstr("torn.npz"));
}

TEST(Npz, TwoArraysOfOneName) {
  const std::string path = Path("twice.npz");
  const HostArray one = Array<uint8_t>(DType::kUint8, {1}, {1});
  ASSERT_TRUE(WriteNpz(path, {{"a", one}, {"b", one}}).ok());
  std::ifstream written(path, std::ios::binary);
  std::string file{std::istreambuf_iterator<char>(written), {}};
  for (size_t at; (at = file.find("b.npy")) != std::string::npos;) file[at] = 'a';
  std::ofstream(path, std::ios::binary) << file;
  EXPECT_THAT(std::string(ReadNpz(path, {}).status().message()),
              AllOf(HasSubstr("twice.npz"), HasSubstr("'a'"), HasSubstr("two of this name")));
}

TEST(Npy, RefusesWhatItWouldMisread) {
  auto parse = [](const std::string& dict, const std::string& data) {
    std::string file("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(dict.size());
    file += '\0';
    return ParseNpy(file + dict + data, nullptr);
  };
  // As NumPy 1 and 2 write it, and with the keys in another order.
  EXPECT_TRUE(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }   \n", "12345678").ok());
  EXPECT_TRUE(parse("{'shape': (), 'fortran_order': False, 'descr': '|b1'}\n", "1").ok());
  struct Case {
    const char *dict, *data, *message;
  };
  for (const Case& c :
       {Case{"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "12345678", "object"},
        Case{"{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", "12345678", "Fortran"},
        Case{"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "12345678", "big-endian"},
        Case{"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "12345678", "structured"},
        Case{"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "12345678", "8 bytes"},
        Case{"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", "",
             "not those"},
        Case{"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "12345678", "malformed"},
        Case{"{'descr': '<f4', 'fortran_order': False, }", "12345678", "malformed"},
        Case{"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "12345678",
             "malformed"},
        Case{"", "", "malformed"}}) {
    EXPECT_THAT(std::string(parse(c.dict, c.data).status().message()), HasSubstr(c.message)) << c.dict;
  }
  EXPECT_THAT(std::string(ParseNpy("\x93NUMPY\x01", nullptr).status().message()), HasSubstr("not an npy"));
  const std::string good = *NpyHeader({DType::kInt64, {1, 2}}) + std::string(16, 'x');
  EXPECT_EQ(good.size() % 16, 0u);
  EXPECT_TRUE(ParseNpy(good, nullptr).ok());
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(ParseNpy(good.substr(0, i), nullptr).ok());
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = good;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      ParseNpy(flipped, nullptr).status().IgnoreError();
    }
  }
}

// Sample i is tokens [iT, iT+T), its labels [iT+1, iT+T+1); 9 tokens make 2 samples of 4 with labels, 10 too.
TEST(Tokens, LabelsAreTheNextTokens) {
  const DataInput ids{.name = "ids", .type = {DType::kInt64, {2, 4}}};
  const DataInput next{.name = "labels", .type = {DType::kInt64, {2, 4}}, .labels = true};
  for (const auto& [tokens, width] :
       {std::pair(TokenType::kU8, 1), {TokenType::kU16, 2}, {TokenType::kU32, 4}}) {
    for (int count : {8, 9, 10}) {
      std::string file;
      for (uint32_t t = 0; t < static_cast<uint32_t>(count); ++t) {
        const uint32_t value = 240 + t;
        file.append(reinterpret_cast<const char*>(&value), width);
      }
      std::ofstream(Path("t.bin"), std::ios::binary) << file;
      const auto data = OpenData(Path("t.bin"), {ids, next}, {.tokens = tokens});
      ASSERT_TRUE(data.ok()) << data.status();
      EXPECT_EQ((*data)->samples(), count == 8 ? 1 : 2);
      if (count == 8) continue;
      EXPECT_THAT(ReadAs<int64_t>(**data, 0, {1, -1}, 8), ElementsAre(244, 245, 246, 247, 0, 0, 0, 0));
      EXPECT_THAT(ReadAs<int64_t>(**data, 1, {1, 0}, 8), ElementsAre(245, 246, 247, 248, 241, 242, 243, 244));
    }
  }
  EXPECT_EQ((*OpenData(Path("t.bin"), {ids}, {.tokens = TokenType::kU32}))->samples(), 2)
      << "inference needs no label";
  EXPECT_THAT(std::string(OpenData(Path("t.bin"), {ids, next}, {}).status().message()),
              HasSubstr("--tokens"));
  EXPECT_THAT(std::string(OpenData(Path("t.bin"), {kX}, {.tokens = TokenType::kU8}).status().message()),
              HasSubstr("'x'"));
  std::ofstream(Path("odd.bin")) << "abc";
  EXPECT_THAT(std::string(OpenData(Path("odd.bin"), {ids}, {.tokens = TokenType::kU16}).status().message()),
              HasSubstr("multiple of 2"));
}

TEST(Synthetic, IsAFunctionOfSeedNameAndSample) {
  const std::vector<DataInput> inputs = {{.name = "x", .type = {DType::kFloat32, {2, 500}}},
                                         {.name = "ids", .type = {DType::kInt64, {2, 500}}, .bound = 7}};
  const auto data = *OpenData("synthetic", inputs, {.seed = 3, .synthetic_samples = 8});
  const auto again = *OpenData("synthetic", inputs, {.seed = 3, .synthetic_samples = 8});
  const auto other = *OpenData("synthetic", inputs, {.seed = 4, .synthetic_samples = 8});
  const auto x = ReadAs<float>(*data, 0, {5, 6}, 1000);
  EXPECT_EQ(ReadAs<float>(*again, 0, {5, 6}, 1000), x);
  EXPECT_NE(ReadAs<float>(*other, 0, {5, 6}, 1000), x);
  const auto swapped = ReadAs<float>(*data, 0, {6, 5}, 1000);
  EXPECT_TRUE(std::equal(x.begin(), x.begin() + 500, swapped.begin() + 500)) << "wherever the sample stands";
  double mean = 0, square = 0;
  for (float v : x) mean += v / 1000.0, square += v * v / 1000.0;
  EXPECT_NEAR(mean, 0, 0.15);
  EXPECT_NEAR(square, 1, 0.2);
  std::set<int64_t> seen;
  for (int64_t id : ReadAs<int64_t>(*data, 1, {0, 1}, 1000)) seen.insert(id);
  EXPECT_EQ(seen, (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(SampleOrder, IsAPermutationThatSeedAndEpochChoose) {
  for (int64_t n : {1, 2, 3, 4, 5, 16, 17, 1000}) {
    std::set<int64_t> seen;
    const SampleOrder order(n, true, 5, 2);
    for (int64_t i = 0; i < n; ++i) seen.insert(order.At(i));
    EXPECT_EQ(static_cast<int64_t>(seen.size()), n);
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), n - 1);
  }
  auto first = [](uint64_t seed, int64_t epoch) {
    const SampleOrder order(1000, true, seed, epoch);
    std::vector<int64_t> samples;
    for (int i = 0; i < 20; ++i) samples.push_back(order.At(i));
    return samples;
  };
  EXPECT_EQ(first(1, 0), first(1, 0));
  EXPECT_NE(first(1, 0), first(1, 1));
  EXPECT_NE(first(1, 0), first(2, 0));
  // No order at all: neighbours stay neighbours about once in n, not most of the time.
  int kept = 0;
  const SampleOrder order(1000, true, 9, 0);
  for (int i = 0; i + 1 < 1000; ++i) kept += order.At(i + 1) == order.At(i) + 1;
  EXPECT_LT(kept, 20);
  EXPECT_EQ(SampleOrder(1000, false, 1, 3).At(17), 17);
}

TEST(Widens, OnlyWhatKeepsEveryValue) {
  EXPECT_TRUE(Widens(DType::kUint8, DType::kInt64));
  EXPECT_TRUE(Widens(DType::kInt32, DType::kInt64));
  EXPECT_TRUE(Widens(DType::kUint32, DType::kInt64));
  EXPECT_FALSE(Widens(DType::kUint64, DType::kInt64));
  EXPECT_FALSE(Widens(DType::kInt8, DType::kUint64));
  EXPECT_FALSE(Widens(DType::kInt64, DType::kInt32));
  EXPECT_FALSE(Widens(DType::kInt32, DType::kFloat64));
  EXPECT_FALSE(Widens(DType::kFloat64, DType::kFloat32));
  EXPECT_FALSE(Widens(DType::kBool, DType::kInt64));
}

}  // namespace
}  // namespace pipec
