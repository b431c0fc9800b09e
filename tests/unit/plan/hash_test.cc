#include "runtime/plan/hash.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/unit/support/scratch.h"

namespace pipec {
namespace {

// XXH3-64 of nothing and of "abc", from the algorithm's reference implementation.
TEST(Hash, IsXxh3) {
  EXPECT_EQ(HashBytes(""), "2d06800538d394c2");
  EXPECT_EQ(HashBytes("abc"), "78af5f94892f3950");
}

// Longer than any buffer, and cut where no buffer ends.
TEST(Hash, OfASliceIsThatOfItsBytes) {
  std::string contents;
  for (int i = 0; i < 300'000; ++i) contents += std::to_string(i * 37 % 1001);
  const std::string path = testing::ScratchPath("hashed");
  std::ofstream(path, std::ios::binary) << contents;
  auto file = FileReader::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->bytes(), contents.size());
  for (const auto [offset, length] : {std::pair<size_t, size_t>{0, contents.size()}, {3, 0}, {17, 600'001}}) {
    auto hash = HashSlice(*file, offset, length);
    ASSERT_TRUE(hash.ok()) << hash.status();
    EXPECT_EQ(*hash, HashBytes(contents.substr(offset, length)));
  }
  EXPECT_EQ(HashSlice(*file, 10, contents.size()).status().code(), absl::StatusCode::kInvalidArgument);
}

// Holes are zeros, wherever they begin and end, also at the end of the file.
TEST(Hash, OfHolesIsThatOfZeros) {
  const std::string path = testing::ScratchPath("holes");
  std::string contents(5'000'000, '\0');
  std::ofstream file(path, std::ios::binary);
  for (const int64_t at : {3, 70'000, 1'000'001, 1'300'000}) {
    const std::string data(9000, static_cast<char>(at % 251));
    contents.replace(at, data.size(), data);
    file.seekp(at);
    file << data;
  }
  file.close();
  std::filesystem::resize_file(path, contents.size());
  auto reader = FileReader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const size_t offset : {0, 4, 8191, 69'999, 500'000, 1'309'005, 4'999'999}) {
    for (const size_t length : {1, 4096, 400'001, 5'000'000}) {
      const size_t clipped = std::min(length, contents.size() - offset);
      auto hash = HashSlice(*reader, offset, clipped);
      ASSERT_TRUE(hash.ok()) << hash.status();
      EXPECT_EQ(*hash, HashBytes(contents.substr(offset, clipped))) << offset << " " << clipped;
    }
  }
  EXPECT_EQ(HashSlice(*reader, 4'999'999, 2).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Hash, OnlyOfRegularFiles) {
  EXPECT_EQ(FileReader::Open(testing::ScratchPath("nothing")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FileReader::Open("/dev/null").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pipec
