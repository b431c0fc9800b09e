#include "tests/conformance/run_suite.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <regex>
#include <vector>

#include "tests/conformance/known_gaps.h"

namespace pipec {

void AddSuiteFlags(FlagTable& table, SuiteFlags& flags, const std::string& suites,
                   const std::string& self_test) {
  table.String("suite", "DIR", &flags.suite, "folder of tests: " + suites);
  table.Regex("filter", &flags.filter, "tests whose name matches", "all");
  table.List("gaps", "FILE", &flags.gaps,
             "tests that do not pass, with reasons; one that passes counts as failed");
  table.OnOff("self-test", &flags.self_test, self_test);
  table.Check([&flags] {
    return flags.suite.empty() ? absl::InvalidArgumentError("--suite is missing") : absl::OkStatus();
  });
}

int RunSuite(const std::string& program, const SuiteFlags& flags, const JudgeTest& judge) {
  const absl::StatusOr<std::vector<SuiteTest>> tests = FindTests(flags.suite);
  if (!tests.ok()) return Refuse(program, tests.status());
  std::vector<KnownGap> gaps;
  for (const std::string& file : flags.gaps) {
    const absl::StatusOr<std::vector<KnownGap>> more = ReadKnownGaps(file);
    if (!more.ok()) return Refuse(program, more.status());
    gaps.insert(gaps.end(), more->begin(), more->end());
  }
  std::string folder = (std::filesystem::temp_directory_path() / (program + "-XXXXXX")).string();
  if (mkdtemp(folder.data()) == nullptr) return Refuse(program, absl::InternalError("no temporary folder"));
  const std::regex filter(flags.filter.empty() ? ".*" : flags.filter);
  int passed = 0, failed = 0, skipped = 0;
  for (const SuiteTest& test : *tests) {
    if (!std::regex_search(test.name, filter)) continue;
    const KnownGap* gap = FindGap(gaps, test.name);
    absl::Status status = judge(test, folder);
    const bool closed = gap != nullptr && status.ok();
    if (closed) status = absl::FailedPreconditionError("passes, but is in the list of gaps");
    if (absl::IsCancelled(status)) {
      ++skipped;
      if (!status.message().empty()) std::cout << "skipped " << test.name << ": " << status.message() << "\n";
    } else if (gap != nullptr && !closed) {
      ++skipped;
      std::cout << "skipped " << test.name << ": " << gap->reason << "\n";
    } else if (status.ok()) {
      ++passed;
    } else {
      ++failed;
      std::cout << "failed " << test.name << ": " << status.message() << "\n";
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  std::cout << "passed " << passed << " failed " << failed << " skipped " << skipped << std::endl;
  if (passed + failed == 0) return Refuse(program, absl::NotFoundError("no test ran"));
  return failed == 0 ? kExitDone : kExitRefused;
}

}  // namespace pipec
