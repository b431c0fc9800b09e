// What emulated threads and operations did to each byte, and whether two of them may do what they did: the rules of
// races.
//
// Every byte of device, pinned and shared memory has a cell: who wrote it last, who read it since (two readers, kept as
// far apart as possible). An access conflicts with an earlier one of these that is not ordered before it, if one of the
// two writes and not both are atomic. Order is what the accessor says: barriers inside a block, streams and events
// between operations, never between blocks. A race is thereby seen whatever order the threads really ran in.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_emulation {

enum class Access { kRead, kWrite, kAtomic };

// One point in the life of one thread of one run (an operation; for shared memory, a block).
struct Moment {
  uint32_t run = 0;  // 0: nobody
  uint32_t thread = 0;
  uint32_t time = 0;
};

struct Cell {
  Moment write;
  Moment read[2];
  uint32_t atomic = 0;  // whether the last write was
};

// Who accesses now, and what has happened before that.
class Accessor {
 public:
  explicit Accessor(Moment now) : now(now) {}
  virtual ~Accessor() = default;
  virtual bool After(const Moment& earlier) const = 0;
  // Of a thread's block, for the choice of readers to keep; any numbering.
  virtual uint32_t BlockOf(uint32_t thread) const = 0;

  Moment now;
};

struct Conflict {
  Moment earlier;  // earlier.run == 0: there is none
  bool wrote = false;
  size_t at = 0;  // which of the cells
};

// Checks an access to neighbouring bytes and notes it.
Conflict Touch(Cell* cells, size_t count, Access access, const Accessor& accessor);

}  // namespace cuda_emulation
