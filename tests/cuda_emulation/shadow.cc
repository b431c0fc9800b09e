#include "tests/cuda_emulation/shadow.h"

#include <cstring>

namespace cuda_emulation {
namespace {

bool SameThread(const Moment& a, const Moment& b) { return a.run == b.run && a.thread == b.thread; }

// How far apart two accesses are: the further, the more later writers conflict with one of them.
int Distance(const Moment& a, const Moment& b, const Accessor& accessor) {
  if (a.run != b.run) return 4;
  if (accessor.BlockOf(a.thread) != accessor.BlockOf(b.thread)) return 3;
  if (a.thread / 32 != b.thread / 32) return 2;
  return a.thread != b.thread ? 1 : 0;
}

void NoteRead(Cell& cell, const Accessor& accessor) {
  const Moment& now = accessor.now;
  for (Moment& reader : cell.read) {
    if (reader.run == 0 || SameThread(reader, now) || accessor.After(reader)) {
      reader = now;
      return;
    }
  }
  if (Distance(cell.read[0], now, accessor) > Distance(cell.read[0], cell.read[1], accessor))
    cell.read[1] = now;
}

Conflict TouchOne(Cell& cell, Access access, const Accessor& accessor) {
  const auto conflicts = [&](const Moment& earlier) { return earlier.run != 0 && !accessor.After(earlier); };
  if (conflicts(cell.write) && !(access == Access::kAtomic && cell.atomic)) return {cell.write, true};
  if (access == Access::kRead) {
    NoteRead(cell, accessor);
    return {};
  }
  for (const Moment& reader : cell.read) {
    if (conflicts(reader)) return {reader, false};
  }
  cell = {accessor.now, {}, access == Access::kAtomic};
  return {};
}

}  // namespace

Conflict Touch(Cell* cells, size_t count, Access access, const Accessor& accessor) {
  Cell past;
  for (size_t i = 0; i < count; ++i) {
    // Neighbours mostly have one past, and so one present.
    if (i > 0 && std::memcmp(&cells[i], &past, sizeof(Cell)) == 0) {
      cells[i] = cells[i - 1];
      continue;
    }
    past = cells[i];
    Conflict conflict = TouchOne(cells[i], access, accessor);
    if (conflict.earlier.run == 0) continue;
    conflict.at = i;
    return conflict;
  }
  return {};
}

}  // namespace cuda_emulation
