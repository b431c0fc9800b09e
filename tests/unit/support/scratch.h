// A folder for the files of this test program: its own, even while other programs of the suite run; gone when
// it ends.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace pipec::testing {

class ScratchFolder {
 public:
  ScratchFolder() : path_(::testing::TempDir() + "/pipec." + std::to_string(getpid())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string ScratchPath(const std::string& name) {
  static const ScratchFolder folder;
  return folder.path() + "/" + name;
}

}  // namespace pipec::testing
