#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/schedule/schedule.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr char kPairEnd[] = ")OVERLAP_F_B";

// What PyTorch's runtime does besides computing; pipec orders its own messages and has no sharded parameters.
constexpr absl::string_view kLeftOut[] = {"UNSHARD", "RESHARD", "REDUCE_GRAD", "SEND_F",
                                          "RECV_F",  "SEND_B",  "RECV_B"};

// A cell's actions: none if it is empty or left out, two if it is a pair. BW is read as B.
absl::StatusOr<std::vector<Action>> ParseCell(absl::string_view cell) {
  std::vector<Action> actions;
  if (cell.empty()) return actions;
  if (absl::ConsumePrefix(&cell, "(")) {
    const std::vector<absl::string_view> halves = absl::StrSplit(cell, ';');
    absl::string_view second = halves.back();
    if (halves.size() != 2 || !absl::ConsumeSuffix(&second, kPairEnd))
      return absl::InvalidArgumentError("a pair has the form (0F7;7B3)OVERLAP_F_B");
    for (const absl::string_view half : {halves[0], second}) {
      ASSIGN_OR_RETURN(const Action action, ParseAction(half));
      actions.push_back(action);
    }
    if (actions[0].kind != ActionKind::kF || actions[1].kind != ActionKind::kB)
      return absl::InvalidArgumentError("a pair is an F and a B");
    actions[0].paired = true;
    return actions;
  }
  // Digits, name, digits or nothing.
  constexpr char kDigits[] = "0123456789";
  const absl::string_view name = cell.substr(std::min(cell.find_first_not_of(kDigits), cell.size()));
  for (absl::string_view left_out : kLeftOut) {
    if (name.size() < cell.size() && name.substr(0, name.find_first_of(kDigits)) == left_out &&
        name.find_first_not_of(kDigits, left_out.size()) == name.npos)
      return actions;
  }
  std::string text(cell);
  if (const size_t full = text.find("BW"); full != text.npos) text.erase(full + 1, 1);
  ASSIGN_OR_RETURN(const Action action, ParseAction(text));
  if (!IsCompute(action.kind))
    return absl::InvalidArgumentError("not one of F, I, B, W, a pair or a message");
  actions.push_back(action);
  return actions;
}

// Cells as they stand in the file.
struct Table {
  std::vector<std::vector<Action>> ranks;
  std::vector<std::vector<int>> cells;  // of each action, from 1
  bool old_names = false;               // B is the input gradient
};

absl::StatusOr<Table> ParseTable(absl::string_view text, absl::string_view name) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // as some editors begin a file of UTF-8
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  while (!lines.empty() && absl::StripAsciiWhitespace(lines.back()).empty()) lines.pop_back();
  if (lines.empty()) return absl::InvalidArgumentError(absl::StrCat("schedule ", name, " has no line"));
  Table table;
  bool has_input_gradients = false, has_weight_gradients = false;
  for (size_t line = 0; line < lines.size(); ++line) {
    std::vector<Action>& list = table.ranks.emplace_back();
    std::vector<int>& cells_of_list = table.cells.emplace_back();
    const std::vector<absl::string_view> cells = absl::StrSplit(lines[line], ',');
    for (size_t k = 0; k < cells.size(); ++k) {
      const absl::string_view cell = absl::StripAsciiWhitespace(cells[k]);
      const absl::StatusOr<std::vector<Action>> actions = ParseCell(cell);
      if (!actions.ok()) {
        return absl::InvalidArgumentError(absl::StrCat("schedule ", name, ": line ", line + 1, ", cell ",
                                                       k + 1, ", '", cell,
                                                       "': ", actions.status().message()));
      }
      table.old_names |= absl::StrContains(cell, "BW");
      for (const Action& action : *actions) {
        has_input_gradients |= action.kind == ActionKind::kI;
        has_weight_gradients |= action.kind == ActionKind::kW;
        list.push_back(action);
        cells_of_list.push_back(static_cast<int>(k) + 1);
      }
    }
  }
  const bool full_backward_named = table.old_names;
  table.old_names |= has_weight_gradients && !has_input_gradients;
  if (!table.old_names) return table;
  // In such a file BW, read as B, is the whole backward of a microbatch without W; B of one with W the input gradient.
  for (std::vector<Action>& list : table.ranks) {
    absl::flat_hash_set<std::pair<int, int>> with_w;  // stage, microbatch
    for (const Action& action : list) {
      if (action.kind == ActionKind::kW) with_w.insert({action.stage, action.microbatch});
    }
    for (Action& action : list) {
      if (action.kind != ActionKind::kB) continue;
      const bool has_w = with_w.contains({action.stage, action.microbatch});
      if (has_w || !full_backward_named) action.kind = ActionKind::kI;
    }
  }
  return table;
}

}  // namespace

std::string ToCsv(const Schedule& schedule) {
  std::string csv;
  for (const auto& list : schedule.ranks) {
    absl::string_view separator = "";
    bool in_pair = false;
    for (const Action& action : list) {
      if (!IsCompute(action.kind)) continue;
      absl::StrAppend(&csv, in_pair ? ";" : separator, action.paired ? "(" : "", ToString(action),
                      in_pair ? kPairEnd : "");
      in_pair = action.paired;
      separator = ",";
    }
    absl::StrAppend(&csv, "\n");
  }
  return csv;
}

absl::StatusOr<Schedule> FromCsv(absl::string_view text, absl::string_view name) {
  ASSIGN_OR_RETURN(Table table, ParseTable(text, name));
  Schedule schedule;
  schedule.name = std::string(name);
  schedule.shape = {static_cast<int>(table.ranks.size()), 1, 0};
  absl::flat_hash_map<int, int> rank_of;
  int stages = 0;
  // Every stage and every microbatch has an action: neither number can be above how many there are.
  size_t actions = 0;
  for (const std::vector<Action>& list : table.ranks) actions += list.size();
  for (int r = 0; r < schedule.shape.ranks; ++r) {
    for (size_t k = 0; k < table.ranks[r].size(); ++k) {
      const Action& action = table.ranks[r][k];
      auto bad = [&](absl::string_view what) {
        return absl::InvalidArgumentError(absl::StrCat("schedule ", name, ": line ", r + 1, ", cell ",
                                                       table.cells[r][k], ", ", ToString(action), ": ",
                                                       what));
      };
      if (action.stage >= static_cast<int64_t>(actions) ||
          action.microbatch >= static_cast<int64_t>(actions)) {
        return bad(absl::StrCat("the file has only ", Counted(actions, "action", "actions"),
                                ", so this stage or microbatch is not complete"));
      }
      stages = std::max(stages, action.stage + 1);
      schedule.shape.microbatches = std::max(schedule.shape.microbatches, action.microbatch + 1);
      if (const int rank = rank_of.emplace(action.stage, r).first->second; rank != r) {
        return bad(absl::StrCat("stage ", action.stage, " stands on line ", rank + 1, " too"));
      }
    }
  }
  std::vector<int> stages_of_rank(schedule.shape.ranks, 0);
  for (int s = 0; s < stages; ++s) {
    const auto it = rank_of.find(s);
    if (it == rank_of.end()) {
      return absl::InvalidArgumentError(absl::StrCat("schedule ", name, ": there are stages up to ",
                                                     stages - 1, ", but stage ", s, " is on no line"));
    }
    schedule.rank_of_stage.push_back(it->second);
    ++stages_of_rank[it->second];
  }
  schedule.shape.virtual_stages = stages_of_rank[0];
  for (int r = 0; r < schedule.shape.ranks; ++r) {
    if (stages_of_rank[r] == schedule.shape.virtual_stages && stages_of_rank[r] > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule ", name, ": line ", r + 1, " has ", Counted(stages_of_rank[r], "stage", "stages"),
        ", line 1 has ", stages_of_rank[0], "; every rank holds equally many, at least one"));
  }
  schedule.ranks = std::move(table.ranks);
  schedule.cells = std::move(table.cells);
  return schedule;
}

}  // namespace pipec
