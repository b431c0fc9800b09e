#include "runtime/driver/hyperparameters.h"

#include <cmath>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/regex.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

struct Defaults {
  const char* optimizer;
  double lr, weight_decay, momentum, beta1, beta2, eps;
};
// torch.optim, version 2.
constexpr Defaults kDefaults[] = {
    {"sgd", 1e-3, 0, 0, 0, 0, 0},
    {"momentum", 1e-3, 0, 0.9, 0, 0, 0},
    {"nesterov", 1e-3, 0, 0.9, 0, 0, 0},
    {"adam", 1e-3, 0, 0, 0.9, 0.999, 1e-8},
    {"adamw", 1e-3, 1e-2, 0, 0.9, 0.999, 1e-8},
    {"adagrad", 1e-2, 0, 0, 0, 0, 1e-10},
};

absl::Status Apply(const PerParameter& setting, const std::vector<std::string>& names, absl::string_view flag,
                   double ParameterScalars::*field, std::vector<ParameterScalars>* rows) {
  for (ParameterScalars& row : *rows) row.*field = setting.value.value_or(0);
  for (const auto& [pattern, value] : setting.by_regex) {
    bool matched = false;
    ASSIGN_OR_RETURN(const std::regex regex, ParseRegex(pattern));
    for (size_t i = 0; i < names.size(); ++i) {
      if (!std::regex_search(names[i], regex)) continue;
      (*rows)[i].*field = value;
      matched = true;
    }
    if (!matched) {
      return absl::NotFoundError(
          absl::StrCat("--", flag, ": '", pattern, "' matches no trained parameter",
                       names.empty() ? "" : absl::StrCat("; one is called '", names[0], "'")));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddSetting(absl::string_view text, PerParameter* setting) {
  const size_t equals = text.rfind('=');
  const absl::string_view number = equals == absl::string_view::npos ? text : text.substr(equals + 1);
  double value;
  if (!absl::SimpleAtod(number, &value) || !std::isfinite(value) || value < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is neither a number from 0 on nor REGEX=NUMBER"));
  }
  if (equals == absl::string_view::npos) {
    setting->value = value;
  } else {
    RETURN_IF_ERROR(ParseRegex(text.substr(0, equals)).status());
    setting->by_regex.emplace_back(text.substr(0, equals), value);
  }
  return absl::OkStatus();
}

absl::Status CheckUsed(const Hyperparameters& given, absl::string_view optimizer) {
  for (const Defaults& row : kDefaults) {
    if (optimizer != row.optimizer) continue;
    for (const auto& [flag, value, known] :
         {std::tuple("--momentum", given.momentum, row.momentum),
          std::tuple("--beta1", given.beta1, row.beta1), std::tuple("--beta2", given.beta2, row.beta2),
          std::tuple("--eps", given.eps, row.eps)}) {
      if (value.has_value() && known == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(flag, ": the plan's optimizer ", optimizer,
                         " has no such setting (pipec --optimizer chooses another)"));
      }
    }
  }
  return absl::OkStatus();
}

Hyperparameters WithDefaults(const Hyperparameters& given, absl::string_view optimizer) {
  Hyperparameters all = given;
  for (const Defaults& row : kDefaults) {
    if (optimizer != row.optimizer) continue;
    auto set = [](std::optional<double>* value, double otherwise) {
      if (!value->has_value()) *value = otherwise;
    };
    set(&all.lr.value, row.lr);
    set(&all.weight_decay.value, row.weight_decay);
    set(&all.momentum, row.momentum);
    set(&all.beta1, row.beta1);
    set(&all.beta2, row.beta2);
    set(&all.eps, row.eps);
  }
  return all;
}

std::string Describe(const Hyperparameters& h, absl::string_view optimizer) {
  std::string text = absl::StrCat(optimizer, ": lr ", h.lr.value.value_or(0));
  for (const auto& [pattern, value] : h.lr.by_regex) absl::StrAppend(&text, " (", pattern, ": ", value, ")");
  absl::StrAppend(&text, ", weight decay ", h.weight_decay.value.value_or(0));
  for (const auto& [pattern, value] : h.weight_decay.by_regex)
    absl::StrAppend(&text, " (", pattern, ": ", value, ")");
  auto add = [&](const char* name, const std::optional<double>& value) {
    if (value.value_or(0) != 0) absl::StrAppend(&text, ", ", name, " ", *value);
  };
  add("momentum", h.momentum);
  add("beta1", h.beta1);
  add("beta2", h.beta2);
  add("eps", h.eps);
  add("clip norm", h.clip_norm);
  add("clip value", h.clip_value);
  return text;
}

absl::StatusOr<std::vector<ParameterScalars>> Resolve(const Hyperparameters& hyperparameters,
                                                      const std::vector<std::string>& names) {
  std::vector<ParameterScalars> rows(names.size());
  RETURN_IF_ERROR(Apply(hyperparameters.lr, names, "lr", &ParameterScalars::lr, &rows));
  RETURN_IF_ERROR(
      Apply(hyperparameters.weight_decay, names, "weight-decay", &ParameterScalars::weight_decay, &rows));
  return rows;
}

}  // namespace pipec
