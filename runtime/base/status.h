// The two macros that everybody who returns absl::Status needs.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define PIPEC_CONCAT_(a, b) a##b
#define PIPEC_CONCAT(a, b) PIPEC_CONCAT_(a, b)

#define RETURN_IF_ERROR(expr)                              \
  do {                                                     \
    if (absl::Status status_ = (expr); !status_.ok()) {    \
      return status_;                                      \
    }                                                      \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_(PIPEC_CONCAT(statusor_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_(tmp, lhs, expr)    \
  auto tmp = (expr);                         \
  if (!tmp.ok()) return tmp.status();        \
  lhs = *std::move(tmp)
