#include "tests/bench/run_program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace pipec::bench {

namespace {

// Starts a program whose stdout is the descriptor `out` and whose stdin, unless -1, is `in`; the other
// descriptors of the bench's pipes close by themselves.
pid_t Spawn(const std::vector<std::string>& words, int in, int out) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / words[0];
  const pid_t child = fork();
  if (child == 0) {
    if (in >= 0) dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    std::perror(program.c_str());
    _exit(127);
  }
  return child;
}

struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) std::exit(1);
  }
  int ends[2];  // what reads, what writes
};

}  // namespace

Outcome RunProgram(const std::vector<std::string>& words) {
  const Pipe pipe;
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = Spawn(words, -1, pipe.ends[1]);
  close(pipe.ends[1]);
  Outcome outcome;
  char buffer[1 << 16];
  ssize_t n = 0;
  while ((n = read(pipe.ends[0], buffer, sizeof(buffer))) > 0) outcome.out.append(buffer, n);
  close(pipe.ends[0]);
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

Companion::Companion(const std::vector<std::string>& words) : name_(words[0]) {
  const Pipe questions, answers;
  pid_ = Spawn(words, questions.ends[0], answers.ends[1]);
  close(questions.ends[0]);
  close(answers.ends[1]);
  to_ = fdopen(questions.ends[1], "w");
  from_ = fdopen(answers.ends[0], "r");
}

Companion::~Companion() {
  std::fclose(to_);
  std::fclose(from_);
  waitpid(pid_, nullptr, 0);
}

std::string Companion::ReadLine() {
  std::string line;
  for (int c = std::fgetc(from_); c != '\n'; c = std::fgetc(from_)) {
    if (c == EOF) {
      std::fprintf(stderr, "%s ended before it answered\n", name_.c_str());
      std::exit(1);
    }
    line.push_back(static_cast<char>(c));
  }
  return line;
}

std::string Companion::Ask(const std::string& line) {
  std::fprintf(to_, "%s\n", line.c_str());
  std::fflush(to_);
  return ReadLine();
}

}  // namespace pipec::bench
