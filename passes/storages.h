// Which values of a rank share memory, and who touches that memory.
#pragma once

#include <vector>

#include "compiler/ir/module.h"
#include "passes/rank_programs.h"

namespace pipec {

// The instructions of one program that touch a storage: all lie within [first, last].
struct StorageAccess {
  int program;
  int first;
  int last;
};

// Values that lie in the same bytes: views, messages within the rank, accumulators and parameters with what
// updates them, results in place of an operand that dies there.
struct Storage {
  std::vector<const Value*> values;      // in no particular order
  const Value* named = nullptr;          // the one of them after which the buffer is called
  int64_t bytes = 0;                     // of one microbatch: the largest of the values
  std::vector<StorageAccess> accesses;   // by program, ascending; none for a B that repeats its stage's I and W
  std::vector<const Message*> sent;      // to another rank
  std::vector<const Message*> received;  // from another rank
  bool keeps =
      false;  // parameters, constants, accumulators, optimizer state: keeps its contents between actions
  bool input = false;   // fed for every microbatch
  bool output = false;  // read by the driver when its program has run

  // Nothing but one program knows of it.
  bool local() const {
    return !keeps && !input && !output && sent.empty() && received.empty() && accesses.size() <= 1;
  }
};

// Outputs of the model that the rank makes, for the driver to read; none in training.
std::vector<const Value*> DeliveredOutputs(const Module& module, int rank);

// Every value that the rank's nodes use or make is in exactly one storage.
std::vector<Storage> BuildStorages(const Module& module, int rank, const RankPrograms& programs);

}  // namespace pipec
