#include "compiler/ir/verify.h"

#include "runtime/base/status.h"

namespace pipec {

absl::Status Verify(const Module& module) {
  RETURN_IF_ERROR(VerifyModel(module));
  if (module.mode == Mode::kTrain && module.level >= Level::kTraining) RETURN_IF_ERROR(VerifyTraining(module));
  if (module.level >= Level::kStaged) RETURN_IF_ERROR(VerifyStaged(module));
  if (module.level >= Level::kScheduled) RETURN_IF_ERROR(VerifyScheduled(module));
  if (module.level >= Level::kPlanned) RETURN_IF_ERROR(VerifyPlanned(module));
  return absl::OkStatus();
}

}  // namespace pipec
