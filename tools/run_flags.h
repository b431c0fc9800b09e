// piperun's flags.
#pragma once

#include <string>

#include "runtime/driver/run.h"
#include "tools/support/flags.h"

namespace pipec {

struct RunFlags {
  std::string plan;
  RunOptions options;
  std::string device = "cpu";
  std::string transport = "local";
  int threads = 0;  // per rank; 0: cores / ranks
  bool verify = false;
  bool no_graph = false;  // device cuda
  bool json = false;
};

// Adds all flags; they must outlive the table's Parse.
void AddRunFlags(FlagTable& table, RunFlags& flags);

}  // namespace pipec
