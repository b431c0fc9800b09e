#include "tests/bench/run_program.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace pipec::bench {

Outcome RunProgram(const std::vector<std::string>& words) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / words[0];
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) std::exit(1);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDOUT_FILENO);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    std::perror(program.c_str());
    _exit(127);
  }
  close(pipe_ends[1]);
  Outcome outcome;
  char buffer[1 << 16];
  ssize_t n = 0;
  while ((n = read(pipe_ends[0], buffer, sizeof(buffer))) > 0) outcome.out.append(buffer, n);
  close(pipe_ends[0]);
  int status = 0;
  rusage usage;
  wait4(child, &status, 0, &usage);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
  outcome.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  outcome.peak_bytes = static_cast<double>(usage.ru_maxrss) * 1024;
  return outcome;
}

Outcome MustRun(const std::vector<std::string>& words) {
  Outcome outcome = RunProgram(words);
  if (outcome.exit_code != 0) {
    for (const std::string& word : words) std::fprintf(stderr, "%s ", word.c_str());
    std::fprintf(stderr, "ended with exit code %d\n", outcome.exit_code);
    std::exit(1);
  }
  return outcome;
}

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "pipec-bench-XXXXXX").string();
  if (!mkdtemp(name.data())) std::exit(1);
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace pipec::bench
