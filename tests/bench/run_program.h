// Runs programs for a bench: to their end, with seconds and peak memory of the child process, or beside the
// bench, which asks and reads answers.
#pragma once

#include <cstdio>
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

// A program that stays: it prints a line when it is ready, and then one for every line that it reads. Ends with
// the destructor, which closes its input.
class Companion {
 public:
  explicit Companion(const std::vector<std::string>& words);
  ~Companion();
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

  // Ends the bench with a message if the program has ended.
  std::string ReadLine();
  std::string Ask(const std::string& line);

 private:
  std::string name_;
  int pid_ = 0;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

}  // namespace pipec::bench
