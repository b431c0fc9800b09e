#include "compiler/emit/emit.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "../passes_staged/small_models.h"
#include "compiler/emit/rank_plan.h"
#include "runtime/base/atomic_file.h"
#include "runtime/plan/check.h"
#include "runtime/plan/hash.h"
#include "runtime/plan/linked_data.h"
#include "runtime/plan/load.h"
#include "runtime/plan/verify.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class EmitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/emit-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string target() const { return root_ + "/net.plan"; }
  std::set<std::string> Entries() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(root_)) names.insert(entry.path().filename());
    return names;
  }
  absl::Status Emit(const Module& module) {
    ASSIGN_OR_RETURN(const ParameterPlacement placement, PlaceParameters(module));
    return EmitPlan(module, placement, {target(), "0.0.0", {{"model.onnx", "the model"}}});
  }

  std::string root_;
};

std::unique_ptr<Module> Planned(std::unique_ptr<Module> module, const PassContext& context) {
  EXPECT_EQ(Compile(*module, context, Level::kPlanned), absl::OkStatus());
  return module;
}

std::vector<plan::RankPlan> Load(const std::string& directory) {
  absl::StatusOr<Manifest> manifest = LoadManifest(directory);
  EXPECT_EQ(manifest.status(), absl::OkStatus());
  std::vector<plan::RankPlan> plans;
  for (int r = 0; r < manifest->ranks; ++r) {
    absl::StatusOr<plan::RankPlan> rank_plan = LoadRankPlan(directory, *manifest, r);
    EXPECT_EQ(rank_plan.status(), absl::OkStatus());
    if (rank_plan.ok()) plans.push_back(*std::move(rank_plan));
  }
  return plans;
}

TEST_F(EmitTest, WhatIsWrittenIsAPlan) {
  struct Row {
    std::unique_ptr<Module> (*make)();
    int ranks;
    std::string schedule;
  };
  const Row rows[] = {{Tied, 1, "1f1b"},
                      {Tied, 4, "1f1b"},
                      {Skips, 3, "gpipe"},
                      {Tied, 2, "interleaved"},
                      {Skips, 1, "interleaved"},
                      {[] { return Chain(6); }, 3, "interleaved"},
                      {[] { return Chain(4, Mode::kInfer); }, 3, "infer"}};
  for (const Row& row : rows) {
    auto module = Planned(row.make(), Context(row.ranks, 6, row.schedule));
    ASSERT_EQ(Emit(*module), absl::OkStatus());
    EXPECT_THAT(Entries(), ::testing::ElementsAre("net.plan"));
    const std::vector<plan::RankPlan> plans = Load(target());
    ASSERT_EQ(plans.size(), row.ranks);
    std::vector<const plan::RankPlan*> pointers;
    for (const plan::RankPlan& rank_plan : plans) pointers.push_back(&rank_plan);
    EXPECT_EQ(VerifyPlan(pointers), absl::OkStatus()) << row.schedule << " P=" << row.ranks;
    std::set<std::string> saved;
    for (const plan::RankPlan& rank_plan : plans) {
      for (const plan::Parameter& parameter : rank_plan.parameters()) {
        if (parameter.first_owner()) {
          EXPECT_TRUE(saved.insert(parameter.name()).second) << parameter.name();
        }
        EXPECT_EQ(parameter.states_size(), parameter.trained() ? 2 : 0);
      }
    }
    EXPECT_EQ(saved.size(), LoadManifest(target())->parameters.size());
  }
}

TEST_F(EmitTest, TheManifestDescribesInputsAndLabels) {
  ASSERT_EQ(Emit(*Planned(Chain(2), Context(2, 4))), absl::OkStatus());
  absl::StatusOr<Manifest> manifest = LoadManifest(target());
  ASSERT_EQ(manifest.status(), absl::OkStatus());
  EXPECT_EQ(manifest->labels, "labels");
  ASSERT_EQ(manifest->inputs.size(), 2);
  EXPECT_EQ(manifest->inputs[1].bound, kWidth);
  EXPECT_EQ(manifest->batch(), 8);
}

// How the parameters are laid out must not depend on the stages: a checkpoint of one plan is a checkpoint of
// another.
TEST_F(EmitTest, ParametersDoNotDependOnTheCut) {
  auto one = Planned(Tied(), Context(1, 4)), four = Planned(Tied(), Context(4, 4, "gpipe"));
  absl::StatusOr<ParameterPlacement> a = PlaceParameters(*one), b = PlaceParameters(*four);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(a->parameters.size(), 3);
  ASSERT_EQ(b->parameters.size(), 3);
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(a->parameters[k].value->name(), b->parameters[k].value->name());
    EXPECT_EQ(a->parameters[k].checkpoint_offset, b->parameters[k].checkpoint_offset);
  }
}

TEST_F(EmitTest, ReplacesAPlanAndNothingElse) {
  auto module = Planned(Chain(2), Context(2, 4));
  ASSERT_EQ(Emit(*module), absl::OkStatus());
  std::ofstream(target() + "/stale") << "x";
  ASSERT_EQ(Emit(*module), absl::OkStatus());
  EXPECT_FALSE(fs::exists(target() + "/stale"));
  // A plan of another version, whose manifest has other fields.
  std::ofstream(target() + "/manifest.json") << R"({"format": 1, "pipec_version": "0.0.1", "xxh3": "0"})";
  ASSERT_EQ(Emit(*module), absl::OkStatus());

  std::ofstream(target() + "/manifest.json") << R"({"name": "somebody else's"})";
  EXPECT_EQ(Emit(*module).code(), absl::StatusCode::kAlreadyExists);
  fs::remove_all(target());
  fs::create_directory(target());
  std::ofstream(target() + "/thesis.txt") << "x";
  const absl::Status status = Emit(*module);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not a plan"));
  EXPECT_TRUE(fs::exists(target() + "/thesis.txt"));
  EXPECT_THAT(Entries(), ::testing::ElementsAre("net.plan"));
}

TEST_F(EmitTest, LeavesNothingBehindOnFailure) {
  auto module = Planned(Chain(2), Context(2, 4));
  absl::StatusOr<ParameterPlacement> placement = PlaceParameters(*module);
  ASSERT_TRUE(placement.ok());
  Value* weight = module->graph.FindValue("w1");
  weight->data.bytes = nullptr;
  weight->data.file = std::make_shared<const std::string>(root_ + "/gone");
  EXPECT_FALSE(EmitPlan(*module, *placement, {target(), "0.0.0", {}}).ok());
  EXPECT_TRUE(Entries().empty());
}

TEST_F(EmitTest, LinksWeightsThatLieInFiles) {
  auto module = Planned(Chain(2), Context(2, 4));
  const std::string path = root_ + "/weights.bin";
  std::ofstream(path) << std::string(100, 'x') << std::string(2 * kWidth * kWidth * 4, '\2');
  uint64_t offset = 100;
  for (const char* name : {"w0", "w1"}) {
    Value* weight = module->graph.FindValue(name);
    weight->data.bytes = nullptr;
    weight->data.file = std::make_shared<const std::string>(path);
    weight->data.offset = offset;
    offset += weight->data.length;
  }
  absl::StatusOr<ParameterPlacement> placement = PlaceParameters(*module, ParameterMode::kLink);
  ASSERT_EQ(placement.status(), absl::OkStatus());
  ASSERT_EQ(EmitPlan(*module, *placement, {target(), "0.0.0", {}}), absl::OkStatus());
  EXPECT_FALSE(fs::exists(target() + "/parameters"));
  const std::vector<plan::RankPlan> plans = Load(target());
  ASSERT_EQ(plans.size(), 2);
  EXPECT_EQ(plans[1].parameters(0).file(), path);
  EXPECT_EQ(plans[1].parameters(0).offset(), 100 + kWidth * kWidth * 4);
  absl::StatusOr<Manifest> manifest = LoadManifest(target());
  ASSERT_EQ(manifest->links.size(), 1);
  EXPECT_EQ(manifest->links[0].path, path);
  EXPECT_EQ(manifest->links[0].bytes, 100 + 2 * kWidth * kWidth * 4);
  EXPECT_EQ(manifest->parameters[1].hash, HashBytes(std::string(kWidth * kWidth * 4, '\2')));
  // Copied instead, they are the same bytes.
  placement = PlaceParameters(*module);
  ASSERT_EQ(EmitPlan(*module, *placement, {target(), "0.0.0", {}}), absl::OkStatus());
  absl::StatusOr<SafetensorsFile> copied = SafetensorsFile::Open(target() + "/" + kParameterFile);
  ASSERT_EQ(copied.status(), absl::OkStatus());
  EXPECT_EQ(copied->Bytes(*copied->Find("w1")), std::string(kWidth * kWidth * 4, '\2'));
}

TEST_F(EmitTest, LinksWhatLiesInFilesAndCopiesTheRest) {
  auto module = Planned(Chain(3), Context(3, 4));
  const std::string path = root_ + "/weights.bin";
  const size_t bytes = kWidth * kWidth * 4;
  std::ofstream(path) << std::string(bytes, '\1') << std::string(bytes, '\2');
  const std::string inside = *module->graph.FindValue("w1")->data.bytes;
  for (const char* name : {"w0", "w2"}) {
    Value* weight = module->graph.FindValue(name);
    weight->data.bytes = nullptr;
    weight->data.file = std::make_shared<const std::string>(path);
    weight->data.offset = name[1] == '0' ? 0 : bytes;
  }
  absl::StatusOr<ParameterPlacement> placement = PlaceParameters(*module, ParameterMode::kLink);
  ASSERT_EQ(placement.status(), absl::OkStatus());
  ASSERT_EQ(EmitPlan(*module, *placement, {target(), "0.0.0", {}}), absl::OkStatus());
  const std::vector<plan::RankPlan> plans = Load(target());
  ASSERT_EQ(plans.size(), 3);
  EXPECT_EQ(plans[0].parameters(0).file(), path);
  EXPECT_EQ(plans[1].parameters(0).file(), kParameterFile);
  EXPECT_EQ(plans[2].parameters(0).file(), path);
  absl::StatusOr<SafetensorsFile> copied = SafetensorsFile::Open(target() + "/" + kParameterFile);
  ASSERT_EQ(copied.status(), absl::OkStatus());
  ASSERT_EQ(copied->entries().size(), 1);
  EXPECT_EQ(copied->Bytes(*copied->Find("w1")), inside);
  EXPECT_EQ(static_cast<int64_t>(plans[1].parameters(0).offset()), copied->Find("w1")->offset);
  // In a checkpoint all lie together, wherever they start out.
  EXPECT_EQ(placement->parameters[2].checkpoint_offset - placement->parameters[1].checkpoint_offset, bytes);
}

// A rank looks at its own slices again if the file is not the one that was hashed; --verify always does.
TEST_F(EmitTest, LinkedWeightsThatChangeAreNoticed) {
  auto module = Planned(Chain(2), Context(2, 4));
  const std::string path = root_ + "/weights.bin";
  const size_t bytes = kWidth * kWidth * 4;
  const std::string contents = std::string(bytes, '\1') + std::string(bytes, '\2');
  const auto write = [&](const std::string& text, int hours) {
    std::ofstream(path, std::ios::trunc) << text;
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  write(contents, 1);
  for (const char* name : {"w0", "w1"}) {
    Value* weight = module->graph.FindValue(name);
    weight->data.bytes = nullptr;
    weight->data.file = std::make_shared<const std::string>(path);
    weight->data.offset = name[1] == '0' ? 0 : bytes;
  }
  absl::StatusOr<ParameterPlacement> placement = PlaceParameters(*module, ParameterMode::kLink);
  ASSERT_EQ(EmitPlan(*module, *placement, {target(), "0.0.0", {}}), absl::OkStatus());
  absl::StatusOr<Manifest> manifest = LoadManifest(target());
  const auto load = [&](int rank) { return LoadRankPlan(target(), *manifest, rank).status(); };

  write(contents, 2);  // another time, the same bytes
  EXPECT_EQ(load(1), absl::OkStatus());
  EXPECT_EQ(CheckPlan(target()), absl::OkStatus());
  write(contents + "more", 1);  // another size, the same slices
  EXPECT_EQ(load(1), absl::OkStatus());
  std::string other = contents;
  other[bytes + 5] = 'x';
  write(other, 2);
  EXPECT_EQ(load(0), absl::OkStatus());  // not its slice
  EXPECT_THAT(std::string(load(1).message()),
              AllOf(HasSubstr("'w1'"), HasSubstr(path), HasSubstr("has changed")));
  EXPECT_THAT(std::string(CheckPlan(target()).message()), AllOf(HasSubstr("'w1'"), HasSubstr("has changed")));
  // To all appearance the file that was hashed: taking the hashes tells.
  manifest->links[0].modified_ns = FileReader::Open(path)->modified_ns();
  EXPECT_EQ(load(1), absl::OkStatus());
  EXPECT_FALSE(CheckLinkedData(*manifest).ok());
  write(contents.substr(0, bytes), 1);
  EXPECT_FALSE(load(1).ok());
  EXPECT_THAT(std::string(CheckPlan(target()).message()), HasSubstr("has shrunk to"));
  fs::remove(path);
  EXPECT_EQ(load(0).code(), absl::StatusCode::kNotFound);
}

TEST_F(EmitTest, AModelWithoutWeightsCanOnlyBePlanned) {
  auto module = Planned(Chain(2), Context(2, 4));
  module->graph.FindValue("w0")->data = {};
  const absl::Status status = PlaceParameters(*module).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("w0"));
}

}  // namespace
}  // namespace pipec
