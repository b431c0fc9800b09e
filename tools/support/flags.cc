#include "tools/support/flags.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/regex.h"
#include "runtime/base/status.h"
#include "tools/support/clean_text.h"
#include "tools/support/values.h"

namespace pipec {
namespace {

constexpr size_t kMostMessage = 4000;  // bytes of an error's message that are shown

// One number of type T with a lower bound.
template <typename T, typename Read>
auto NumberParser(T* target, T least, absl::string_view wanted, Read read) {
  return [=](absl::string_view text) -> absl::Status {
    T number = 0;
    if (!read(text, &number))
      return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a ", wanted));
    if (number != number) return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a ", wanted));
    if (number < least) return absl::InvalidArgumentError(absl::StrCat(text, " is below ", least));
    *target = number;
    return absl::OkStatus();
  };
}

// NAME=VALUE into a map, once a name; `read` reads the value.
template <typename T, typename Read>
auto MapParser(std::map<std::string, T>* target, std::string form, Read read) {
  return [=](absl::string_view text) -> absl::Status {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == absl::string_view::npos)
      return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not of the form ", form));
    T value;
    if (absl::Status status = read(text.substr(equals + 1), &value); !status.ok())
      return absl::InvalidArgumentError(absl::StrCat(text.substr(0, equals), ": ", status.message()));
    const auto [it, fresh] = target->emplace(text.substr(0, equals), std::move(value));
    return fresh ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat("'", it->first, "' is given twice"));
  };
}

std::string OrNumber(const std::string& words, double number) {
  return words.empty() ? absl::StrCat(number) : words;
}

// An error, its program before each of its lines.
void Say(absl::string_view program, absl::string_view message) {
  for (absl::string_view line : absl::StrSplit(CleanText(message, kMostMessage), '\n'))
    std::cerr << program << ": " << line << "\n";
}

}  // namespace

FlagTable::FlagTable(std::string program, std::string synopsis, std::string summary)
    : program_(std::move(program)), synopsis_(std::move(synopsis)), summary_(std::move(summary)) {}

void FlagTable::Add(Flag flag) {
  flag.group = group_;
  flags_.push_back(std::move(flag));
}

void FlagTable::OnOff(std::string name, bool* target, std::string help) {
  Add({.name = name,
       .default_text = *target ? "on" : "off",
       .help = help,
       .parse = [target](absl::string_view text) -> absl::Status {
         *target = true;
         if (text.empty() || absl::SimpleAtob(text, target)) return absl::OkStatus();
         return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not known; valid are true, false"));
       }});
}

void FlagTable::Int(std::string name, std::string value, int64_t* target, int64_t least, std::string help,
                    std::string default_text) {
  Add({.name = name,
       .value = value,
       .default_text = OrNumber(default_text, *target),
       .help = help,
       .parse = NumberParser(target, least, "whole number", absl::SimpleAtoi<int64_t>)});
}

void FlagTable::Int(std::string name, std::string value, int* target, int least, std::string help,
                    std::string default_text) {
  Add({.name = name,
       .value = value,
       .default_text = OrNumber(default_text, *target),
       .help = help,
       .parse = NumberParser(target, least, "whole number", absl::SimpleAtoi<int>)});
}

void FlagTable::IntOrAuto(std::string name, std::string value, int* target, bool* is_auto, int least,
                          std::string help, std::string default_text) {
  const auto number = NumberParser(target, least, "whole number or auto", absl::SimpleAtoi<int>);
  Add({.name = name,
       .value = absl::StrCat(value, "|auto"),
       .default_text = default_text,
       .help = help,
       .choices = {"auto"},
       .parse = [=](absl::string_view text) {
         *is_auto = text == "auto";
         return *is_auto ? absl::OkStatus() : number(text);
       }});
}

void FlagTable::Double(std::string name, std::string value, double* target, double least, std::string help,
                       std::string default_text) {
  Add({.name = name,
       .value = value,
       .default_text = OrNumber(default_text, *target),
       .help = help,
       .parse = NumberParser(target, least, "number", absl::SimpleAtod)});
}

void FlagTable::String(std::string name, std::string value, std::string* target, std::string help,
                       std::string default_text) {
  Add({.name = name,
       .value = value,
       .default_text = default_text.empty() ? *target : default_text,
       .help = help,
       .parse = [target, value](absl::string_view text) -> absl::Status {
         if (text.empty())
           return absl::InvalidArgumentError(absl::StrCat("the value is empty, wanted ", value));
         *target = std::string(text);
         return absl::OkStatus();
       }});
}

void FlagTable::Regex(std::string name, std::string* target, std::string help, std::string default_text) {
  Add({.name = name,
       .value = "REGEX",
       .default_text = default_text,
       .help = help,
       .parse = [target](absl::string_view text) -> absl::Status {
         RETURN_IF_ERROR(ParseRegex(text).status());
         *target = std::string(text);
         return absl::OkStatus();
       }});
}

void FlagTable::Choice(std::string name, std::string* target, std::vector<std::string> choices,
                       std::string help, std::string default_text, std::string others) {
  Add({.name = name,
       .value = absl::StrJoin(choices, "|"),
       .default_text = default_text.empty() ? *target : default_text,
       .help = help,
       .choices = choices,
       .parse = [=](absl::string_view text) -> absl::Status {
         if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
           return absl::InvalidArgumentError(
               absl::StrCat("'", text, "' is not known; valid are ", absl::StrJoin(choices, ", "),
                            others.empty() ? "" : "; ", others));
         }
         *target = std::string(text);
         return absl::OkStatus();
       }});
}

void FlagTable::Size(std::string name, int64_t* target, std::string help, std::string default_text) {
  Add({.name = name,
       .value = "SIZE",
       .default_text = default_text,
       .help = help,
       .parse = [target](absl::string_view text) -> absl::Status {
         ASSIGN_OR_RETURN(*target, ParseSize(text));
         return *target > 0 ? absl::OkStatus() : absl::InvalidArgumentError("a size is at least 1 byte");
       }});
}

void FlagTable::List(std::string name, std::string value, std::vector<std::string>* target,
                     std::string help) {
  Add({.name = name,
       .value = value,
       .help = help,
       .repeated = true,
       .parse = [target](absl::string_view text) {
         for (absl::string_view item : absl::StrSplit(text, ',', absl::SkipEmpty()))
           target->emplace_back(item);
         return absl::OkStatus();
       }});
}

void FlagTable::Map(std::string name, std::string value, std::map<std::string, std::string>* target,
                    std::string help) {
  const auto read = [](absl::string_view text, std::string* one) {
    *one = std::string(text);
    return absl::OkStatus();
  };
  Add({.name = name, .value = value, .help = help, .repeated = true, .parse = MapParser(target, value, read)});
}

void FlagTable::Map(std::string name, std::string value, std::map<std::string, int64_t>* target, int64_t least,
                    std::string help) {
  const auto read = [least](absl::string_view text, int64_t* one) {
    return NumberParser(one, least, "whole number", absl::SimpleAtoi<int64_t>)(text);
  };
  Add({.name = name, .value = value, .help = help, .repeated = true, .parse = MapParser(target, value, read)});
}

void FlagTable::Positional(std::string name, std::string* target, bool required) {
  arguments_.push_back({std::move(name), target, required});
}

const Flag* FlagTable::Find(absl::string_view name) const {
  for (const Flag& flag : flags_) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

const Flag* FlagTable::Nearest(absl::string_view name) const {
  const Flag* nearest = nullptr;
  unsigned best = 0;
  for (const Flag& flag : flags_) {
    const unsigned distance = llvm::StringRef(flag.name).edit_distance({name.data(), name.size()});
    if (!nearest || distance < best) nearest = &flag, best = distance;
  }
  // What shares little is another word, not a misspelt one.
  return best <= (name.size() + 2) / 3 ? nearest : nullptr;
}

std::vector<const char*> FlagTable::TakeOutUnknown(int argc, char** argv,
                                                   std::vector<std::string>* mistakes) const {
  std::vector<const char*> kept = {argv[0]};
  for (int i = 1; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    if (argument.size() < 2 || argument[0] != '-') {
      kept.push_back(argv[i]);
      continue;
    }
    const size_t equals = argument.find('=');
    const absl::string_view dashed = argument.substr(0, equals);
    const absl::string_view name = dashed.substr(std::min(dashed.find_first_not_of('-'), dashed.size()));
    const Flag* flag = Find(name);
    const bool known = flag != nullptr;
    if (known) {
      kept.push_back(argv[i]);
    } else {
      flag = Nearest(name);
      mistakes->push_back(absl::StrCat("unknown flag ", dashed,
                                       flag ? absl::StrCat("; did you mean --", flag->name, "?") : ""));
    }
    // The next word is this flag's value, whatever it looks like; that of an unknown flag goes with it.
    const bool takes_next = flag && !flag->value.empty() && equals == absl::string_view::npos;
    if (takes_next && i + 1 == argc) {
      if (!known) continue;
      mistakes->push_back(absl::StrCat(dashed, ": the value is missing, wanted ", flag->value));
      kept.pop_back();
    } else if (takes_next && (known || argv[i + 1][0] != '-')) {
      ++i;
      if (known) kept.push_back(argv[i]);
    }
  }
  return kept;
}

std::optional<int> FlagTable::Parse(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    std::string text;
    if (word == "--help" || word == "-h") text = Help();
    if (word == "--version") text = absl::StrCat(program_, " ", kVersion, "\n");
    if (word == "--print-completion") text = BashCompletion();
    if (word == "--print-man") text = ManPage();
    if (!text.empty()) {
      std::cout << text;
      return Done(program_);
    }
  }

  std::vector<std::string> mistakes;
  const std::vector<const char*> known = TakeOutUnknown(argc, argv, &mistakes);

  namespace cl = llvm::cl;
  std::vector<std::unique_ptr<cl::list<std::string>>> values;
  for (const Flag& flag : flags_) {
    const cl::ValueExpected takes_value = flag.value.empty() ? cl::ValueOptional : cl::ValueRequired;
    values.push_back(std::make_unique<cl::list<std::string>>(llvm::StringRef(flag.name), takes_value));
  }
  cl::list<std::string> positional(cl::Positional, cl::ZeroOrMore);
  // llvm::cl keeps a global list of options: leave none behind that is gone.
  const auto forget = absl::MakeCleanup([] { cl::ResetCommandLineParser(); });
  std::string complaints;
  llvm::raw_string_ostream stream(complaints);
  if (!cl::ParseCommandLineOptions(static_cast<int>(known.size()), known.data(), "", &stream)) {
    for (absl::string_view line : absl::StrSplit(stream.str(), '\n', absl::SkipWhitespace())) {
      mistakes.emplace_back(absl::StripPrefix(line, absl::StrCat(program_, ": ")));
    }
    if (mistakes.empty()) return kExitUsage;  // llvm::cl said it itself
  }

  for (size_t k = 0; k < flags_.size(); ++k) {
    if (values[k]->size() > 1 && !flags_[k].repeated) {
      mistakes.push_back(absl::StrCat("--", flags_[k].name, " is given ", values[k]->size(), " times"));
    }
    for (const std::string& value : *values[k]) {
      if (absl::Status status = flags_[k].parse(value); !status.ok()) {
        mistakes.push_back(absl::StrCat("--", flags_[k].name, ": ", std::string(status.message())));
      }
    }
  }
  for (size_t k = 0; k < positional.size(); ++k) {
    if (k < arguments_.size()) {
      *arguments_[k].target = positional[k];
    } else {
      mistakes.push_back(absl::StrCat("unexpected argument '", positional[k], "'"));
    }
  }
  for (size_t k = positional.size(); k < arguments_.size(); ++k) {
    if (arguments_[k].required) mistakes.push_back(absl::StrCat(arguments_[k].name, " is missing"));
  }
  if (mistakes.empty()) {
    for (const auto& rule : rules_) {
      if (absl::Status status = rule(); !status.ok()) mistakes.emplace_back(status.message());
    }
  }
  if (mistakes.empty()) return std::nullopt;
  for (const std::string& mistake : mistakes) Say(program_, mistake);
  Say(program_, absl::StrCat("see ", program_, " --help"));
  return kExitUsage;
}

int Done(absl::string_view program) {
  if (std::cout.flush()) return kExitDone;
  return Refuse(program, absl::ResourceExhaustedError("cannot write to the standard output"));
}

int Refuse(absl::string_view program, const absl::Status& status) {
  Say(program, status.message());
  return kExitRefused;
}

}  // namespace pipec
