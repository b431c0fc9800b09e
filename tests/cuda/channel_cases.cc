#include "tests/cuda/channel_cases.h"

#include "tests/cuda/draw.h"

namespace pipec {
namespace {

// (samples, channels, places...), or one channel.
Shape ChannelShape(Random& random) {
  constexpr int64_t kPlaces[] = {1, 2, 3, 4, 7, 8, 16, 30};
  Shape shape{Draw(random, 1, 5)};
  const int64_t rank = Draw(random, 1, 4);
  if (rank > 1) shape.push_back(Draw(random, 1, 6));
  if (rank > 2) shape.push_back(kPlaces[Draw(random, 0, 7)]);
  if (rank > 3) shape.push_back(Draw(random, 1, 3));
  // So many that several blocks share a channel.
  if (Draw(random, 0, 9) == 0) shape = {3, 2, 4000 + Draw(random, 0, 1)};
  return shape;
}
int64_t Channels(const Shape& shape) { return shape.size() < 2 ? 1 : shape[1]; }

// Statistics that stand beside X are its own type's.
MakeCase Forward(const std::string& domain, const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Named(domain, op);
    const TensorType x{AnyFloat(random), ChannelShape(random)}, row{x.dtype, {Channels(x.shape)}};
    AddInput(c, x, random);
    for (int k = 1; k < 4; ++k) AddInput(c, row, random);
    AddInput(c, row, random, true);
    c.spec.attributes.Set("epsilon", 0.01f);
    c.spec.outputs = {{x}, {row}, {row}};
    if (domain.empty()) {
      c.spec.attributes.Set("momentum", 0.75f);
      const bool training = Draw(random, 0, 1) != 0;
      c.spec.attributes.Set("training_mode", int64_t{training});
      if (!training) c.spec.outputs.resize(1);
      for (size_t k = 1; k < c.spec.outputs.size(); ++k) c.spec.outputs[k].present = Draw(random, 0, 2) != 0;
    }
    c.scalars.training = Draw(random, 0, 1) != 0;
    if (Draw(random, 0, 1)) c.in_place = {0};
    if (!domain.empty()) DrawOwnCasts(c, x.dtype, {0}, true, random);
    return c;
  };
}

KernelCase RunningAverage(Random& random) {
  KernelCase c = Named("ai.pipec", "RunningAverage");
  const TensorType type{AnyFloat(random), {Draw(random, 0, 400)}};
  AddInput(c, type, random);
  AddInput(c, type, random);
  c.spec.attributes.Set("momentum", 0.75f);
  c.spec.outputs = {{type}};
  c.in_place = {0};
  c.scalars.training = Draw(random, 0, 2) != 0;
  return c;
}

// (dY, X, scale if `inputs`, mean, variance)
MakeCase Gradient(const std::string& op, bool inputs) {
  return [=](Random& random) {
    KernelCase c = Named("ai.pipec", op);
    const TensorType x{AnyFloat(random), ChannelShape(random)}, row{x.dtype, {Channels(x.shape)}};
    AddInput(c, x, random);
    AddInput(c, x, random);
    if (inputs) AddInput(c, row, random);
    AddInput(c, row, random);
    AddInput(c, row, random, true);
    c.spec.attributes.Set("epsilon", 0.01f);
    c.spec.outputs = {{inputs ? x : row}};
    if (!inputs && Draw(random, 0, 1)) c.spec.outputs.push_back({row});
    DrawOwnCasts(c, x.dtype, {0, 1}, inputs, random);
    return c;
  };
}

}  // namespace

void AddChannelCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases) {
  cases[{"", "BatchNormalization"}] = Forward("", "BatchNormalization");
  cases[{"ai.pipec", "TrainingBatchNormalization"}] = Forward("ai.pipec", "TrainingBatchNormalization");
  cases[{"ai.pipec", "RunningAverage"}] = RunningAverage;
  cases[{"ai.pipec", "BatchNormalizationInputGrad"}] = Gradient("BatchNormalizationInputGrad", true);
  cases[{"ai.pipec", "BatchNormalizationWeightGrad"}] = Gradient("BatchNormalizationWeightGrad", false);
}

}  // namespace pipec
