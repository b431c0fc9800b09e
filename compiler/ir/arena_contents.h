// What lies in a rank's arena, by name instead of by contents.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "compiler/ir/graph.h"

namespace pipec {

// What lies in some bytes: a value, or that of a buffer which keeps it (value is null), and which one of it: of what
// microbatch of all steps, of what step, or of what version.
struct Contents {
  const Value* value;
  int buffer;
  int number;
  bool operator==(const Contents&) const = default;
};

// An arena that remembers what was written where, by name.
class ArenaContents {
 public:
  void Write(int64_t begin, int64_t bytes, Contents contents) {
    if (bytes == 0) return;
    auto it = pieces_.upper_bound(begin);
    if (it != pieces_.begin() && std::prev(it)->second.end > begin) --it;
    while (it != pieces_.end() && it->first < begin + bytes) it = pieces_.erase(it);
    pieces_.emplace_hint(it, begin, Piece{begin + bytes, contents});
  }
  // Null if no one wrote exactly these bytes, or somebody wrote over some of them.
  const Contents* Find(int64_t begin, int64_t bytes) const {
    auto it = pieces_.find(begin);
    return it != pieces_.end() && it->second.end == begin + bytes ? &it->second.contents : nullptr;
  }

 private:
  struct Piece {
    int64_t end;
    Contents contents;
  };
  std::map<int64_t, Piece> pieces_;
};

}  // namespace pipec
