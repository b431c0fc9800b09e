#include "runtime/checkpoint/safetensors.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/support/scratch.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;

using testing::ScratchPath;

std::string FileWith(const std::string& json, const std::string& buffer) {
  const uint64_t length = json.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + json + buffer;
}

absl::Status OpenBytes(const std::string& bytes) {
  const std::string path = ScratchPath("probe.safetensors");
  std::ofstream(path, std::ios::binary) << bytes;
  return SafetensorsFile::Open(path).status();
}

TEST(Safetensors, WhatIsWrittenIsRead) {
  const std::vector<SafetensorsTensor> tensors = {{"b", {DType::kFloat32, {2, 2}}},
                                                  {"a \"quoted\" \xc3\xa9", {DType::kInt64, {}}},
                                                  {"empty", {DType::kBFloat16, {0, 3}}},
                                                  {"flags", {DType::kBool, {3}}}};
  const std::string buffer = std::string("0123456789abcdef") + "ABCDEFGH" + "xyz";
  const std::string path = ScratchPath("round.safetensors");
  {
    auto writer = SafetensorsWriter::Create(path, tensors, {{"step", "7"}});
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE(writer->Append(absl::string_view(buffer).substr(0, 5)).ok());
    ASSERT_TRUE(writer->Append(absl::string_view(buffer).substr(5)).ok());
    EXPECT_FALSE(std::filesystem::exists(path)) << "the file must appear at Finish only";
    ASSERT_TRUE(writer->Finish().ok());
  }
  auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata().at("step"), "7");
  ASSERT_EQ(file->entries().size(), 4u);
  const auto layout = LayOutSafetensors(tensors, {{"step", "7"}});
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->header.size() % 64, 0u);
  EXPECT_EQ(layout->file_bytes, static_cast<int64_t>(std::filesystem::file_size(path)));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const SafetensorsFile::Entry* entry = file->Find(tensors[i].name);
    ASSERT_NE(entry, nullptr) << tensors[i].name;
    EXPECT_EQ(entry->type, tensors[i].type);
    EXPECT_EQ(entry->offset, layout->offsets[i]);
  }
  EXPECT_EQ(file->Bytes(*file->Find("b")), "0123456789abcdef");
  EXPECT_EQ(file->Bytes(*file->Find("flags")), "xyz");
}

TEST(Safetensors, UnfinishedOrWrongWritesLeaveNothing) {
  const std::string path = ScratchPath("unfinished.safetensors");
  std::filesystem::remove(path);
  {
    auto writer = SafetensorsWriter::Create(path, {{"a", {DType::kFloat32, {2}}}});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->Append("1234").ok());
    EXPECT_FALSE(writer->Finish().ok());
  }
  for (const auto& entry : std::filesystem::directory_iterator(ScratchPath(""))) {
    EXPECT_THAT(entry.path().filename().string(), ::testing::Not(HasSubstr("unfinished")));
  }
}

TEST(Safetensors, AFullDiskIsAnErrorAndLeavesNothing) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  // The temporary file's name is the path and a suffix: a link there leads to the full device.
  const std::string path = ScratchPath("full.safetensors");
  const std::string temporary = path + ".tmp." + std::to_string(getpid());
  std::filesystem::remove(temporary);
  std::filesystem::create_symlink("/dev/full", temporary);
  auto writer = SafetensorsWriter::Create(path, {{"a", {DType::kFloat32, {2}}}});
  EXPECT_THAT(std::string(writer.status().message()), HasSubstr("No space left"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Safetensors, EveryRuleOfTheFormatIsChecked) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  ASSERT_TRUE(OpenBytes(FileWith(good, "12345678")).ok());
  ASSERT_TRUE(OpenBytes(FileWith(good + "   ", "12345678")).ok()) << "spaces may follow the header";
  ASSERT_TRUE(OpenBytes(FileWith("{}", "")).ok());
  struct Case {
    std::string bytes, message;
  };
  const Case cases[] = {
      {"1234567", "shorter than 8"},
      {FileWith(good, "12345678").substr(0, 20), "header of"},
      {std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), "header of"},
      {FileWith(good, "1234567"), "buffer of 7"},
      {FileWith(good, "123456789"), "buffer of 9"},
      {FileWith(" " + good, "12345678"), "does not start with {"},
      {FileWith("{\"a\":", ""), "not a JSON object"},
      {FileWith(good.substr(0, good.size() - 1) + "," + good.substr(1), "12345678"), "duplicate key 'a'"},
      {FileWith(R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", "12345678"), "unknown dtype"},
      {FileWith(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", "12345678"), "exactly"},
      {FileWith(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "12345678"), "needs 12"},
      {FileWith(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "12345678"), "not a size"},
      {FileWith(R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "12345678"), "not a size"},
      {FileWith(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", ""),
       "overflows"},
      {FileWith(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[18446744073709551608,0]}})", ""),
       "not a range"},
      {FileWith(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[1e30,8]}})", "12345678"), "not a pair"},
      {FileWith(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", "123456789012"), "starts at 4"},
      {FileWith(
           R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
           R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
           "123456"),
       "starts at 2"},
      {FileWith(R"({"__metadata__":{"a":1}})", ""), "strings"},
      {FileWith(R"({"a":{"dtype":[[[[[1]]]]],"shape":[2],"data_offsets":[0,8]}})", "12345678"), "deeply"},
  };
  for (const Case& c : cases) {
    const absl::Status status = OpenBytes(c.bytes);
    EXPECT_FALSE(status.ok()) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("probe.safetensors"));
  }
}

TEST(Safetensors, DoubleNamesAndForeignTypesAreNotLaidOut) {
  EXPECT_FALSE(LayOutSafetensors({{"a", {DType::kFloat32, {1}}}, {"a", {DType::kFloat32, {1}}}}).ok());
  EXPECT_FALSE(LayOutSafetensors({{"s", {DType::kString, {1}}}}).ok());
}

// Any file is either read or refused: cut and flipped everywhere.
TEST(Safetensors, DamagedFilesNeverCrash) {
  const std::string good = FileWith(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"k":"v"}})", "12345678");
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(OpenBytes(good.substr(0, i)).ok()) << i;
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = good;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      OpenBytes(flipped).IgnoreError();
    }
  }
}

}  // namespace
}  // namespace pipec
