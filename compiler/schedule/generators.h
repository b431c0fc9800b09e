// The generators behind AllSchedules(), one a file: compute actions only.
#pragma once

#include "compiler/schedule/schedule.h"

namespace pipec {

absl::StatusOr<Schedule> GenerateGpipe(const ScheduleShape& shape);
absl::StatusOr<Schedule> GenerateOneFOneB(const ScheduleShape& shape);
absl::StatusOr<Schedule> GenerateEagerOneFOneB(const ScheduleShape& shape);
absl::StatusOr<Schedule> GenerateLoopedBfs(const ScheduleShape& shape);
absl::StatusOr<Schedule> GenerateInterleaved(const ScheduleShape& shape);
absl::StatusOr<Schedule> GenerateZbH1(const ScheduleShape& shape);
absl::StatusOr<Schedule> GenerateZbH2(const ScheduleShape& shape);
absl::StatusOr<Schedule> GenerateZbV(const ScheduleShape& shape);
absl::StatusOr<Schedule> GenerateVHalf(const ScheduleShape& shape);
absl::StatusOr<Schedule> GenerateVMin(const ScheduleShape& shape);
absl::StatusOr<Schedule> GenerateDualPipeV(const ScheduleShape& shape);
absl::StatusOr<Schedule> GeneratePipedream(const ScheduleShape& shape);
absl::StatusOr<Schedule> GeneratePipedream2bw(const ScheduleShape& shape);
absl::StatusOr<Schedule> GenerateInfer(const ScheduleShape& shape);

// Name, shape, stages placed, and an empty list for every rank. InvalidArgument if a number of the shape is
// below 1.
absl::StatusOr<Schedule> EmptySchedule(absl::string_view name, const ScheduleShape& shape,
                                       Placement placement);

// InvalidArgument if V is not 1.
absl::Status NeedsOneStageARank(absl::string_view name, const ScheduleShape& shape);

// InvalidArgument if V is not 2, as V placement wants it.
absl::Status NeedsTwoStagesARank(absl::string_view name, const ScheduleShape& shape);

}  // namespace pipec
