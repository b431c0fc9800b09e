// The flags of one program, in one table: parsed by llvm::cl, and the source of --help, of the bash
// completion
// (--print-completion) and of the man page (--print-man).
//
// `--flag=value` and `--flag value` both work. All mistakes of a call are reported at once: a misspelt flag
// names the nearest, a misspelt value lists the valid ones.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pipec {

inline constexpr char kVersion[] = "0.1.0";

// Exit codes of every tool.
inline constexpr int kExitDone = 0;
inline constexpr int kExitRefused = 1;
inline constexpr int kExitUsage = 2;

struct Flag {
  std::string name;          // without dashes
  std::string value;         // what stands for the value in --help, with its unit; "" : on or off
  std::string default_text;  // shown in --help; "" : nothing is shown
  std::string help;
  std::vector<std::string> choices;  // for the completion
  bool repeated = false;             // may be given more than once
  // Reads one value into the target; "" of a flag that is on or off. InvalidArgument: what is wrong with the value;
  // the flag's name is added.
  std::function<absl::Status(absl::string_view value)> parse;
  std::string group;
};

class FlagTable {
 public:
  // `synopsis` is what follows the program's name, as in "MODEL [flags]".
  FlagTable(std::string program, std::string synopsis, std::string summary);

  // The flags that follow stand under this title in --help.
  void Group(std::string title) { group_ = std::move(title); }

  // The current content of the target is the default and is shown as such, unless `default_text` says it in
  // words. Numbers below `least` are refused.
  void OnOff(std::string name, bool* target, std::string help);
  void Int(std::string name, std::string value, int64_t* target, int64_t least, std::string help,
           std::string default_text = "");
  void Int(std::string name, std::string value, int* target, int least, std::string help,
           std::string default_text = "");
  // The same, or the word auto, which sets `is_auto` and leaves the target.
  void IntOrAuto(std::string name, std::string value, int* target, bool* is_auto, int least, std::string help,
                 std::string default_text);
  void Double(std::string name, std::string value, double* target, double least, std::string help,
              std::string default_text = "");
  // Any text but the empty one.
  void String(std::string name, std::string value, std::string* target, std::string help,
              std::string default_text = "");
  // A regular expression (runtime/base/regex.h).
  void Regex(std::string name, std::string* target, std::string help, std::string default_text);
  // One of `choices`; `others`: what is said of other words, behind those that are valid.
  void Choice(std::string name, std::string* target, std::vector<std::string> choices, std::string help,
              std::string default_text = "", std::string others = "");
  // Bytes: "8TB", "512MiB", "1000".
  void Size(std::string name, int64_t* target, std::string help, std::string default_text = "");
  // Comma-separated, and the flag may be repeated.
  void List(std::string name, std::string value, std::vector<std::string>* target, std::string help);
  // NAME=VALUE, once a name; numbers below `least` are refused.
  void Map(std::string name, std::string value, std::map<std::string, std::string>* target, std::string help);
  void Map(std::string name, std::string value, std::map<std::string, int64_t>* target, int64_t least,
           std::string help);
  // Anything else.
  void Add(Flag flag);

  // An argument without dashes; arguments are filled in the order of these calls.
  void Positional(std::string name, std::string* target, bool required = true);
  // Called after all values were read without mistake: a rule between flags. Its message is a mistake as any
  // other.
  void Check(std::function<absl::Status()> rule) { rules_.push_back(std::move(rule)); }

  // Reads the command line into the targets. nullopt: go on; else the exit code, everything said. --help,
  // --version,
  // --print-completion and --print-man print and give 0.
  std::optional<int> Parse(int argc, char** argv);

  std::string Help() const;
  std::string BashCompletion() const;
  std::string ManPage() const;

 private:
  struct Argument {
    std::string name;
    std::string* target;
    bool required;
  };
  const Flag* Find(absl::string_view name) const;
  const Flag* Nearest(absl::string_view name) const;
  // Takes the unknown flags out of the command line and says which flag is nearest.
  std::vector<const char*> TakeOutUnknown(int argc, char** argv, std::vector<std::string>* mistakes) const;

  std::string program_, synopsis_, summary_, group_;
  std::vector<Flag> flags_;
  std::vector<Argument> arguments_;
  std::vector<std::function<absl::Status()>> rules_;
};

// What a tool ends with when all went well: kExitDone, or a refusal if its output could not be written.
int Done(absl::string_view program);

// Prints "program: line" to stderr for each line of the message; returns kExitRefused.
int Refuse(absl::string_view program, const absl::Status& status);

}  // namespace pipec
