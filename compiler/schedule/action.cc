#include "compiler/schedule/action.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace pipec {
namespace {

constexpr ActionKind kAllKinds[] = {ActionKind::kF,          ActionKind::kB,     ActionKind::kI,
                                    ActionKind::kW,          ActionKind::kSendF, ActionKind::kRecvF,
                                    ActionKind::kSendB,      ActionKind::kRecvB, ActionKind::kReduceGrad,
                                    ActionKind::kReduceTied, ActionKind::kNorm,  ActionKind::kUpdate};

// The stage at the other end of a message that names none.
int NeighbourStage(ActionKind kind, int stage) {
  return kind == ActionKind::kSendF || kind == ActionKind::kRecvB ? stage + 1 : stage - 1;
}

bool HasStage(ActionKind kind) { return kind != ActionKind::kReduceTied && kind != ActionKind::kNorm; }

// Takes the digits that `text` starts with; nullopt-like -1 if there are none or the number does not fit.
int TakeNumber(absl::string_view& text) {
  size_t length = 0;
  while (length < text.size() && std::isdigit(static_cast<unsigned char>(text[length]))) ++length;
  int number = -1;
  if (length == 0 || !absl::SimpleAtoi(text.substr(0, length), &number)) return -1;
  text.remove_prefix(length);
  return number;
}

}  // namespace

absl::string_view Name(ActionKind kind) {
  switch (kind) {
    case ActionKind::kF:
      return "F";
    case ActionKind::kB:
      return "B";
    case ActionKind::kI:
      return "I";
    case ActionKind::kW:
      return "W";
    case ActionKind::kSendF:
      return "SEND_F";
    case ActionKind::kRecvF:
      return "RECV_F";
    case ActionKind::kSendB:
      return "SEND_B";
    case ActionKind::kRecvB:
      return "RECV_B";
    case ActionKind::kReduceGrad:
      return "REDUCE_GRAD";
    case ActionKind::kReduceTied:
      return "REDUCE_TIED";
    case ActionKind::kNorm:
      return "NORM";
    case ActionKind::kUpdate:
      return "UPDATE";
  }
  return "";
}

bool IsCompute(ActionKind kind) { return kind <= ActionKind::kW; }
bool IsMessage(ActionKind kind) { return kind >= ActionKind::kSendF && kind <= ActionKind::kRecvB; }
bool Sends(ActionKind kind) { return kind == ActionKind::kSendF || kind == ActionKind::kSendB; }

std::string ToString(const Action& action) {
  std::string text;
  if (HasStage(action.kind)) absl::StrAppend(&text, action.stage);
  absl::StrAppend(&text, Name(action.kind));
  if (action.microbatch >= 0) absl::StrAppend(&text, action.microbatch);
  if (IsMessage(action.kind) && action.peer_stage != NeighbourStage(action.kind, action.stage)) {
    absl::StrAppend(&text, Sends(action.kind) ? ">" : "<", action.peer_stage);
  }
  if (action.lag > 0) absl::StrAppend(&text, "-", action.lag);
  return text;
}

absl::StatusOr<Action> ParseAction(absl::string_view text) {
  const auto bad = absl::InvalidArgumentError(absl::StrCat(
      "action ", text, " is not of the form <stage><KIND><microbatch>, such as 2F0 or 0SEND_F3>2"));
  absl::string_view rest = text;
  Action action;
  action.stage = TakeNumber(rest);
  size_t length = 0;
  while (length < rest.size() &&
         (std::isupper(static_cast<unsigned char>(rest[length])) || rest[length] == '_')) {
    ++length;
  }
  const absl::string_view name = rest.substr(0, length);
  rest.remove_prefix(length);
  auto kind = std::find_if(std::begin(kAllKinds), std::end(kAllKinds),
                           [name](ActionKind k) { return Name(k) == name; });
  if (kind == std::end(kAllKinds)) return bad;
  action.kind = *kind;
  action.microbatch = TakeNumber(rest);

  const bool per_microbatch = IsCompute(action.kind) || IsMessage(action.kind);
  if ((action.stage >= 0) != HasStage(action.kind) || (action.microbatch >= 0) != per_microbatch) return bad;
  if (IsMessage(action.kind)) {
    action.peer_stage = NeighbourStage(action.kind, action.stage);
    if (!rest.empty() && rest[0] == (Sends(action.kind) ? '>' : '<')) {
      rest.remove_prefix(1);
      action.peer_stage = TakeNumber(rest);
    }
    if (action.peer_stage < 0) return bad;
  }
  if (!rest.empty()) return bad;
  return action;
}

}  // namespace pipec
