#include "tests/cuda/attention_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cuda/cuda_device.h"
#include "tests/cuda/draw.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

DType SumsOf(DType dtype) { return dtype == DType::kFloat64 ? dtype : DType::kFloat32; }

// With leading axes of heads.
Shape Heads(const AttentionKind& kind, std::initializer_list<int64_t> dims) {
  Shape shape = kind.heads;
  shape.insert(shape.end(), dims);
  return shape;
}

void AddQueriesKeysValues(KernelCase& c, const AttentionKind& kind, DType dtype, Random& random) {
  c.spec.attributes.Set("scale", 0.3f);
  if (kind.causal) c.spec.attributes.Set("causal", int64_t{1});
  if (kind.zero_rows) c.spec.attributes.Set("zero_rows", int64_t{1});
  AddInput(c, {dtype, Heads(kind, {kind.rows, kind.depth})}, random);
  AddInput(c, {dtype, Heads(kind, {kind.columns, kind.depth})}, random);
  AddInput(c, {dtype, Heads(kind, {kind.columns, kind.width})}, random);
}

// Floats hide columns as exporters write it; the first is seen, so that each row has one, unless rows may be hidden:
// then every fifth is.
void AddMask(KernelCase& c, const AttentionKind& kind, DType dtype, Random& random) {
  if (kind.mask.empty()) return;
  AddInput(c, {kind.bools ? DType::kBool : SumsOf(dtype), kind.mask}, random);
  if (kind.bools) c.spec.attributes.Set("fill", -3.0f);
  if (kind.bools || dtype == DType::kFloat64) return;
  auto* const mask = reinterpret_cast<float*>(c.inputs.back().data());
  for (int64_t i = 0; i < NumElements(kind.mask); ++i) {
    if (kind.zero_rows && i / kind.mask.back() % 5 == 1) mask[i] = -std::numeric_limits<float>::infinity();
    if (i % kind.mask.back() == 0) continue;
    if (i % 5 == 3) mask[i] = std::numeric_limits<float>::lowest();
    if (i % 5 == 2) mask[i] = -std::numeric_limits<float>::infinity();
  }
}

double ToleranceOf(DType dtype) {
  if (dtype == DType::kBFloat16) return 1.6e-2;
  if (dtype == DType::kFloat16) return 2e-3;
  return dtype == DType::kFloat32 ? 4e-6 : 1e-13;
}

}  // namespace

KernelCase CaseOf(const AttentionKind& kind, DType dtype, bool logs) {
  Random random(7);
  KernelCase c = Named("ai.pipec", "FusedAttention");
  AddQueriesKeysValues(c, kind, dtype, random);
  AddMask(c, kind, dtype, random);
  c.spec.outputs = {{{dtype, Heads(kind, {kind.rows, kind.width})}},
                    {{SumsOf(dtype), Heads(kind, {kind.rows})}}};
  c.spec.outputs[1].present = logs;
  return c;
}

KernelCase GradientCaseOf(const AttentionKind& kind, DType dtype) {
  Random random(8);
  KernelCase c = Named("ai.pipec", "FusedAttentionGrad");
  const TensorType o{dtype, Heads(kind, {kind.rows, kind.width})},
      logs{SumsOf(dtype), Heads(kind, {kind.rows})};
  AddInput(c, o, random);
  AddQueriesKeysValues(c, kind, dtype, random);
  AddInput(c, o, random);
  std::string numbers;
  for (int64_t i = 0; i < logs.elements(); ++i) {
    double log = static_cast<double>(1 + i % 5) + std::log(kind.columns);
    if (kind.zero_rows && !kind.mask.empty() && i % kind.rows % 5 == 1)
      log = i % 2 ? -std::numeric_limits<double>::infinity() : std::nan("");
    numbers.append(reinterpret_cast<const char*>(&log), sizeof log);
  }
  c.spec.inputs.push_back({logs});
  c.inputs.push_back(Converted(numbers, logs));
  AddMask(c, kind, dtype, random);
  c.spec.outputs = {c.spec.inputs[1], c.spec.inputs[2], c.spec.inputs[3]};
  return c;
}

void ExpectTheCpus(const KernelCase& c, const std::vector<std::string>& got, double growth) {
  const auto wanted = RunCase(*MakeCpuDevice(1), c);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  for (size_t k = 0; k < wanted->size(); ++k) {
    if (!c.spec.outputs[k].present) continue;
    const double tolerance = ToleranceOf(c.spec.inputs[0].type.dtype) * growth;
    EXPECT_EQ(Difference(c.spec.outputs[k].type, (*wanted)[k], got[k], tolerance), "") << "result " << k;
  }
}

std::vector<std::string> Computed(const KernelCase& c, uint64_t seed) {
  cuda_emulation::SetSeed(seed);
  const cuda_emulation::LiveObjects before = cuda_emulation::CountLiveObjects();
  const auto got = RunCase(*MakeCudaDevice(0), c);
  EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
  EXPECT_TRUE(cuda_emulation::CountLiveObjects() == before) << "something was not given back";
  EXPECT_TRUE(got.ok()) << got.status();
  return got.ok() ? *got : std::vector<std::string>(c.spec.outputs.size());
}

}  // namespace pipec
