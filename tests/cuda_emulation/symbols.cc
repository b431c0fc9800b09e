#include "tests/cuda_emulation/symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>
#include <vector>

// Symbols whose addresses in memory and in the file are both known: the difference is where the program was loaded, and
// where this thread's thread_locals lie.
extern "C" {
char cuda_emulation_anchor = 1;
thread_local char cuda_emulation_thread_anchor = 1;
}

namespace cuda_emulation {
namespace {

constexpr std::string_view kPad = "cuda_emulation_pad";
constexpr uintptr_t kLeastGap = 16;

struct Symbol {
  uintptr_t value;
  size_t bytes;
  std::string_view name;  // mangled, in the mapped file
  uintptr_t end() const { return value + bytes; }
};

std::string Demangle(std::string_view name) {
  int status = 0;
  char* text = abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status);
  std::string result = text ? text : std::string(name);
  std::free(text);
  return result;
}

// The last symbol that begins at or before the value; null if there is none.
const Symbol* Below(const std::vector<Symbol>& symbols, uintptr_t value) {
  auto after = std::upper_bound(symbols.begin(), symbols.end(), value,
                                [](uintptr_t v, const Symbol& s) { return v < s.value; });
  return after == symbols.begin() ? nullptr : &*std::prev(after);
}

class Program {
 public:
  static const Program& Get() {
    static const Program* const program = new Program;
    return *program;
  }

  std::vector<Symbol> functions, data, arrays, pads, guards;  // by value
  uintptr_t base = 0;
  uintptr_t thread_anchor = 0;

  uintptr_t ThreadBase() const {
    return reinterpret_cast<uintptr_t>(&cuda_emulation_thread_anchor) - thread_anchor;
  }

 private:
  Program() {
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat status;
    if (fstat(file, &status) == 0) {
      void* image = mmap(nullptr, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
      if (image != MAP_FAILED) Read(static_cast<const char*>(image));
    }
    close(file);
  }

  void Read(const char* image) {
    const auto* header = reinterpret_cast<const Elf64_Ehdr*>(image);
    const auto* sections = reinterpret_cast<const Elf64_Shdr*>(image + header->e_shoff);
    std::vector<Symbol> thread_locals;
    for (int s = 0; s < header->e_shnum; ++s) {
      if (sections[s].sh_type != SHT_SYMTAB) continue;
      const char* names = image + sections[sections[s].sh_link].sh_offset;
      const auto* entries = reinterpret_cast<const Elf64_Sym*>(image + sections[s].sh_offset);
      for (size_t i = 0; i < sections[s].sh_size / sizeof(Elf64_Sym); ++i) {
        const Elf64_Sym& entry = entries[i];
        if (entry.st_shndx == SHN_UNDEF) continue;
        const Symbol symbol{entry.st_value, entry.st_size, names + entry.st_name};
        if (symbol.name == "cuda_emulation_anchor")
          base = reinterpret_cast<uintptr_t>(&cuda_emulation_anchor) - symbol.value;
        if (symbol.name == "cuda_emulation_thread_anchor") thread_anchor = symbol.value;
        switch (ELF64_ST_TYPE(entry.st_info)) {
          case STT_FUNC:
            functions.push_back(symbol);
            break;
          case STT_OBJECT:
            data.push_back(symbol);
            break;
          case STT_TLS:
            thread_locals.push_back(symbol);
            break;
        }
      }
    }
    // _ZZ<function>E<name>: a thread_local of a function that also has a pad.
    std::set<std::string_view> with_shared;
    for (const Symbol& symbol : thread_locals) {
      const size_t at = symbol.name.find(kPad);
      if (at != std::string_view::npos)
        with_shared.insert(symbol.name.substr(0, symbol.name.find_last_not_of("0123456789", at - 1) + 1));
    }
    for (const Symbol& symbol : thread_locals) {
      if (symbol.name.find(kPad) != std::string_view::npos) {
        pads.push_back(symbol);
        continue;
      }
      if (symbol.name.starts_with("_ZGVZ")) guards.push_back(symbol);
      auto prefix = with_shared.upper_bound(symbol.name);
      if (prefix != with_shared.begin() && symbol.name.starts_with(*std::prev(prefix)))
        arrays.push_back(symbol);
    }
    for (auto* list : {&functions, &data, &arrays, &pads, &guards}) {
      std::sort(list->begin(), list->end(),
                [](const Symbol& a, const Symbol& b) { return a.value < b.value; });
    }
  }
};

}  // namespace

Extent SharedMemory() {
  const Program& program = Program::Get();
  if (program.arrays.empty()) return {};
  const uintptr_t begin = std::min(program.arrays.front().value, program.pads.front().value);
  const uintptr_t end = std::max(program.arrays.back().end(), program.pads.back().end());
  return {program.ThreadBase() + begin, end - begin};
}

bool IsGuard(uintptr_t address) {
  const Program& program = Program::Get();
  const Symbol* guard = Below(program.guards, address - program.ThreadBase());
  return guard && address - program.ThreadBase() < guard->end();
}

Extent SharedArrayAt(uintptr_t address) {
  const Program& program = Program::Get();
  const Symbol* symbol = Below(program.arrays, address - program.ThreadBase());
  return symbol ? Extent{program.ThreadBase() + symbol->value, symbol->bytes} : Extent{};
}

std::string SharedArrayName(uintptr_t begin) {
  const Program& program = Program::Get();
  const Symbol* symbol = Below(program.arrays, begin - program.ThreadBase());
  return symbol && symbol->value == begin - program.ThreadBase() ? Demangle(symbol->name) : "";
}

Extent StaticDataAt(uintptr_t address) {
  const Program& program = Program::Get();
  const Symbol* symbol = Below(program.data, address - program.base);
  if (!symbol || address - program.base >= symbol->end()) return {};
  return {program.base + symbol->value, symbol->bytes};
}

std::string FunctionName(const void* function) {
  const Program& program = Program::Get();
  const auto value = reinterpret_cast<uintptr_t>(function) - program.base;
  const Symbol* symbol = Below(program.functions, value);
  return symbol && symbol->value == value ? Demangle(symbol->name) : "?";
}

std::string ArraysWithoutPads() {
  const Program& program = Program::Get();
  std::string names;
  for (size_t i = 0; i < program.arrays.size(); ++i) {
    const Symbol& array = program.arrays[i];
    const bool first = i > 0 && array.value < program.arrays[i - 1].end() + kLeastGap;
    const bool last = i + 1 < program.arrays.size() && program.arrays[i + 1].value < array.end() + kLeastGap;
    if (first || last) names += (names.empty() ? "" : ", ") + Demangle(array.name);
  }
  return names;
}

}  // namespace cuda_emulation
