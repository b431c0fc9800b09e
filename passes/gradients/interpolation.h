// Reading between the places of a tensor, and the way back, for ops that sample: each axis gives taps, and a point's
// value is the sum over all their combinations.
#pragma once

#include <vector>

#include "passes/gradients/gradient.h"

namespace pipec {

// One of the places that a point reads along an axis, for all points. float [blocks, points]; index int64.
struct Tap {
  Value* index;   // within the axis
  Value* weight;  // 0 where nothing is read
  Value* slope;   // of the weight in the coordinate; null: 0 everywhere
};

struct SampledAxis {
  int64_t size;
  std::vector<Tap> taps;
};

// The taps next to coordinate x (float [blocks, points], in places): floor(x) and the next, linearly; outside of the
// axis is 0.
SampledAxis LinearTaps(GradientBuilder& b, Value* x, int64_t size);

// Blocks of `rows` rows of places, the axes in row-major order; points of a block are read from all of its rows.
struct Sampling {
  std::vector<SampledAxis> axes;
  int64_t blocks, rows, points;

  // x float [blocks, rows, places] -> [blocks, rows, points].
  Value* Read(GradientBuilder& b, Value* x) const;
  // The gradient of x from that of the points: every place gets what its readers weighted.
  Value* Spread(GradientBuilder& b, Value* dy) const;
  // The gradient of the coordinate along axis k, [blocks, points]; null where no weight has a slope.
  Value* OfCoordinate(GradientBuilder& b, Value* x, Value* dy, int k) const;
};

}  // namespace pipec
