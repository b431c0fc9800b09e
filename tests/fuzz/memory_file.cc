#include "tests/fuzz/memory_file.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace pipec {
namespace {

constexpr char kInMemory[] = "/dev/shm";

[[noreturn]] void Fail(const std::string& what) {
  std::perror(what.c_str());
  std::abort();
}

}  // namespace

MemoryFile::MemoryFile(const std::string& name) {
  std::error_code code;
  const std::filesystem::path base =
      std::filesystem::is_directory(kInMemory, code) ? kInMemory : std::filesystem::temp_directory_path();
  folder_ = (base / "pipec-fuzz-XXXXXX").string();
  if (!mkdtemp(folder_.data())) Fail(folder_);
  path_ = folder_ + "/" + name;
}

MemoryFile::~MemoryFile() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void MemoryFile::Write(const uint8_t* data, size_t size) {
  std::ofstream file(path_, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  file.close();
  if (!file) Fail(path_);
}

}  // namespace pipec
