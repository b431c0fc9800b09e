// What a flag table says about itself: --help, bash completion, man page.
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tools/support/flags.h"

namespace pipec {
namespace {

constexpr size_t kColumn = 30;  // where the description starts
constexpr size_t kWidth = 100;

std::string Dashed(const Flag& flag) { return absl::StrCat(flag.name.size() == 1 ? "-" : "--", flag.name); }

std::string Usage(const Flag& flag) {
  if (flag.value.empty()) return Dashed(flag);
  return absl::StrCat(Dashed(flag), flag.name.size() == 1 ? " " : "=", flag.value);
}

std::string Description(const Flag& flag) {
  std::string text = flag.help;
  if (flag.repeated) absl::StrAppend(&text, " (may be repeated)");
  if (!flag.default_text.empty()) absl::StrAppend(&text, " (default: ", flag.default_text, ")");
  return text;
}

// `text` broken into lines that start at kColumn; the first continues a line of `used` characters.
std::string Wrapped(absl::string_view text, size_t used) {
  const std::string indent(kColumn, ' ');
  std::string out = used + 2 > kColumn ? absl::StrCat("\n", indent) : std::string(kColumn - used, ' ');
  size_t at = kColumn;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (at > kColumn && at + 1 + word.size() > kWidth) {
      absl::StrAppend(&out, "\n", indent);
      at = kColumn;
    }
    if (at > kColumn) out += ' ', ++at;
    absl::StrAppend(&out, word);
    at += word.size();
  }
  return absl::StrCat(out, "\n");
}

}  // namespace

std::string FlagTable::Help() const {
  std::string out = absl::StrCat("usage: ", program_, " ", synopsis_, "\n", summary_, "\n");
  std::string group;
  for (const Flag& flag : flags_) {
    if (flag.group != group || &flag == &flags_.front()) {
      group = flag.group;
      absl::StrAppend(&out, "\n", group, "\n");
    }
    const std::string usage = absl::StrCat("  ", Usage(flag));
    absl::StrAppend(&out, usage, Wrapped(Description(flag), usage.size()));
  }
  absl::StrAppend(&out, "\nAlso\n  --help, --version, --print-completion (for bash), --print-man\n",
                  "Exit code: 0 done, 1 refused or failed, 2 wrong usage\n");
  return out;
}

std::string FlagTable::BashCompletion() const {
  std::string names, cases;
  for (const Flag& flag : flags_) {
    absl::StrAppend(&names, names.empty() ? "" : " ", Dashed(flag),
                    flag.value.empty() || flag.name.size() == 1 ? "" : "=");
    if (!flag.choices.empty()) {
      absl::StrAppend(&cases, "    ", Dashed(flag), ") COMPREPLY=($(compgen -W '",
                      absl::StrJoin(flag.choices, " "), "' -- \"$word\")); return ;;\n");
    }
  }
  const std::string function = absl::StrCat("_", absl::StrReplaceAll(program_, {{"-", "_"}}));
  return absl::StrCat("# Bash completion of ", program_, ": source this file.\n", function, "() {\n",
                      "  local word=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]}\n",
                      "  if [ \"$word\" = = ]; then word=; elif [ \"$flag\" = = ]; then "
                      "flag=${COMP_WORDS[COMP_CWORD-2]}; fi\n",
                      "  case $flag in\n", cases, "  esac\n",
                      "  case $word in\n    -*) COMPREPLY=($(compgen -W '", names, "' -- \"$word\"))\n",
                      "      if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace; fi ;;\n",
                      "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n  esac\n}\n", "complete -F ",
                      function, " ", program_, "\n");
}

std::string FlagTable::ManPage() const {
  const auto escape = [](absl::string_view text) {
    return absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}, {"'", "\\(aq"}});
  };
  std::string out =
      absl::StrCat(".TH ", absl::AsciiStrToUpper(program_), " 1\n.SH NAME\n", escape(program_), " \\- ",
                   escape(summary_), "\n.SH SYNOPSIS\n.B ", escape(program_), "\n", escape(synopsis_), "\n");
  std::string group;
  for (const Flag& flag : flags_) {
    if (flag.group != group || &flag == &flags_.front()) {
      group = flag.group;
      absl::StrAppend(&out, ".SH ", absl::AsciiStrToUpper(group), "\n");
    }
    absl::StrAppend(&out, ".TP\n.B ", escape(Usage(flag)), "\n", escape(Description(flag)), "\n");
  }
  absl::StrAppend(&out, ".SH EXIT STATUS\n0 done, 1 refused or failed, 2 wrong usage\n");
  return out;
}

}  // namespace pipec
