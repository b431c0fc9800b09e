#include "runtime/plan/hash.h"

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

TEST(Hash, OnlyOfRegularFiles) {
  EXPECT_EQ(FileReader::Open(testing::ScratchPath("nothing")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FileReader::Open("/dev/null").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pipec
