// The course of a program that judges every test of a suite: which tests, which gaps are known, what is counted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/conformance/suite.h"
#include "tools/support/flags.h"

namespace pipec {

struct SuiteFlags {
  std::string suite, filter;
  std::vector<std::string> gaps;
  bool self_test = false;
};

// --suite, --filter, --gaps and --self-test.
void AddSuiteFlags(FlagTable& table, SuiteFlags& flags, const std::string& suites, const std::string& self_test);

// Judges a test, with a folder for its files. Cancelled, with the reason or nothing, where there is nothing to judge.
using JudgeTest = std::function<absl::Status(const SuiteTest& test, const std::string& folder)>;

// Prints what failed and what was skipped, why, and in the last line `passed N failed M skipped K`. A listed gap that
// passes fails: a list must not hide what passes. The exit code: done if none failed and one at least ran.
int RunSuite(const std::string& program, const SuiteFlags& flags, const JudgeTest& judge);

}  // namespace pipec
