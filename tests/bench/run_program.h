// Runs the built programs for a bench: seconds and peak memory of a child process.
#pragma once

#include <string>
#include <vector>

namespace pipec::bench {

struct Outcome {
  int exit_code = 0;
  double seconds = 0;
  double cpu_seconds = 0;  // user and system
  double peak_bytes = 0;   // resident
  std::string out;         // stdout
};

// `words[0]` is looked for beside this program. stderr goes to the bench's own.
Outcome RunProgram(const std::vector<std::string>& words);

// The same; ends the bench with a message if the exit code is not 0.
Outcome MustRun(const std::vector<std::string>& words);

// A folder for the bench's files, removed by the destructor.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

double Median(std::vector<double> values);

}  // namespace pipec::bench
