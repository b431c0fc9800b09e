#include "runtime/driver/loss_scaler.h"

#include "gtest/gtest.h"

namespace pipec {
namespace {

TEST(LossScaler, HalvesAfterAnOverflowAndDoublesAfterManyStepsWithout) {
  LossScaler scaler;
  EXPECT_EQ(scaler.scale(), 65536);
  scaler.Update(true);
  scaler.Update(true);
  EXPECT_EQ(scaler.scale(), 16384);
  EXPECT_EQ(scaler.skipped_steps(), 2);
  for (int step = 0; step < 1999; ++step) scaler.Update(false);
  EXPECT_EQ(scaler.scale(), 16384);
  scaler.Update(true);  // the count starts again
  for (int step = 0; step < 1999; ++step) scaler.Update(false);
  EXPECT_EQ(scaler.scale(), 8192);
  scaler.Update(false);
  EXPECT_EQ(scaler.scale(), 16384);
  for (int step = 0; step < 2000; ++step) scaler.Update(false);
  EXPECT_EQ(scaler.scale(), 32768);
  EXPECT_EQ(scaler.skipped_steps(), 3);
}

TEST(LossScaler, IsExhaustedWhereNoScaleHelps) {
  LossScaler scaler;
  int steps = 0;
  for (; !scaler.exhausted(); ++steps) scaler.Update(true);
  EXPECT_EQ(steps, 30);
  EXPECT_GT(scaler.scale(), 0);
}

}  // namespace
}  // namespace pipec
