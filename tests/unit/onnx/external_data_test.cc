// References into files beside the model, as an enemy would write them.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "compiler/onnx/export.h"
#include "compiler/onnx/read/embed_external_data.h"
#include "compiler/onnx/read/read_model.h"
#include "onnx/onnx_pb.h"
#include "passes/evaluate.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

using testing::AllOf;
using testing::HasSubstr;

namespace fs = std::filesystem;

// y = x + w, with w's two floats described by `entries`.
std::string WriteModel(const std::vector<std::pair<std::string, std::string>>& entries) {
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(21);
  auto& graph = *model.mutable_graph();
  graph.set_name("g");
  auto& weight = *graph.add_initializer();
  weight.set_name("w");
  weight.set_data_type(onnx::TensorProto::FLOAT);
  weight.add_dims(2);
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : entries) {
    auto& entry = *weight.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  auto& input = *graph.add_input();
  input.set_name("x");
  input.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  input.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(2);
  auto& output = *graph.add_output();
  output = input;
  output.set_name("y");
  auto& node = *graph.add_node();
  node.set_op_type("Add");
  node.add_input("x");
  node.add_input("w");
  node.add_output("y");
  return WriteFile("model.onnx", model.SerializeAsString());
}

absl::Status Try(const std::vector<std::pair<std::string, std::string>>& entries,
                 ImportOptions options = {}) {
  return ImportModel(WriteModel(entries), options).status();
}

TEST(ExternalData, IsReferencedNotRead) {
  const std::string file = WriteFile("weights.bin", std::string(4, '\0') + "abcdefgh");
  auto module = ImportModel(
      WriteModel({{"location", "weights.bin"}, {"offset", "4"}, {"length", "8"}, {"checksum", "x"}}), {});
  ASSERT_TRUE(module.ok()) << module.status();
  const Value& w = *(*module)->graph.FindValue("w");
  EXPECT_EQ(w.data.bytes, nullptr);
  EXPECT_EQ(*w.data.file, fs::canonical(file));
  EXPECT_EQ(w.data.offset, 4);
  EXPECT_EQ(w.data.length, 8);
  EXPECT_EQ(*ReadData(w), "abcdefgh");
  // Without offset and length: the whole tensor from the start.
  module = ImportModel(WriteModel({{"location", "weights.bin"}}), {});
  ASSERT_TRUE(module.ok());
  EXPECT_EQ((*module)->graph.FindValue("w")->data.length, 8);
}

TEST(ExternalData, MayBeMissingForPlanningOnly) {
  EXPECT_EQ(Try({{"location", "missing.bin"}}).code(), absl::StatusCode::kNotFound);
  auto module = ImportModel(WriteModel({{"location", "missing.bin"}}), {.allow_missing_weights = true});
  ASSERT_TRUE(module.ok());
  const Value& w = *(*module)->graph.FindValue("w");
  EXPECT_EQ(w.kind(), ValueKind::kParameter);
  EXPECT_EQ(w.data.file, nullptr);
  EXPECT_FALSE(ReadData(w).ok());
}

TEST(ExternalData, LocationsOutsideTheFolderAreRefused) {
  WriteFile("weights.bin", "abcdefgh");
  const fs::path folder = TestFolder();
  fs::create_directories(folder / "sub");
  fs::remove(folder / "link.bin");
  fs::remove(folder / "hard.bin");
  fs::remove(folder / "out");
  fs::remove(folder / "pipe");
  fs::create_symlink("/etc/passwd", folder / "link.bin");
  fs::create_symlink("/etc", folder / "out");
  std::ofstream(folder / "twice.bin") << "abcdefgh";
  fs::create_hard_link(folder / "twice.bin", folder / "hard.bin");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const char* location : {"", "/etc/passwd", "../weights.bin", "sub/../../x", "sub/../weights.bin",
                               "link.bin", "out/passwd", "hard.bin", "pipe", "sub", "."}) {
    const absl::Status status = Try({{"location", location}}, {.allow_missing_weights = true});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << location << ": " << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("initializer 'w'"), HasSubstr(location)));
  }
  EXPECT_EQ(Try({}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Try({{"location", "hard.bin"}}, {.allow_links = true}), absl::OkStatus());
}

TEST(ExternalData, SlicesThatAreNotInTheFileAreRefused) {
  WriteFile("weights.bin", "abcdefghijkl");
  auto with = [](const char* key, const char* value) {
    return Try({{"location", "weights.bin"}, {key, value}});
  };
  for (const char* offset : {"18446744073709551615", "18446744073709551608", "18446744073709551616", "-1",
                             "1e30", "abc", "", " 4", "5", "0x4"}) {
    EXPECT_EQ(with("offset", offset).code(), absl::StatusCode::kInvalidArgument) << offset;
  }
  for (const char* length : {"18446744073709551615", "-8", "4", "12", "abc"}) {
    EXPECT_EQ(with("length", length).code(), absl::StatusCode::kInvalidArgument) << length;
  }
  EXPECT_THAT(std::string(with("colour", "red").message()), HasSubstr("colour"));
  EXPECT_EQ(with("offset", "4"), absl::OkStatus());
}

TEST(ExternalData, RewritingMovesContentsOutOfTheModel) {
  const std::string path =
      WriteFile("text.onnxtxt", Text("g (float[2] x) => (y) <float[2] w = {1, 2}> { y = Add(x, w) }"));
  const std::vector<ExternalTensor> places[] = {{{"w", "parameters/a.safetensors", 128, 8}},
                                                {{"w", "model.safetensors", 64, 8}}};
  auto models = WithExternalData(path, places);
  ASSERT_TRUE(models.ok()) << models.status();
  ASSERT_EQ(models->size(), 2);
  EXPECT_THAT((*models)[0], HasSubstr("parameters/a.safetensors"));
  EXPECT_THAT((*models)[1], AllOf(HasSubstr("model.safetensors"), Not(HasSubstr("parameters"))));
  std::filesystem::create_directories(TestFolder() / "parameters");
  std::string contents(128, '\0');
  contents.append("\0\0\200\77\0\0\0\100", 8);  // 1 and 2
  WriteFile("parameters/a.safetensors", contents);
  auto module = ImportModel(WriteFile("again.onnx", (*models)[0]), {});
  ASSERT_TRUE(module.ok()) << module.status();
  auto original = ImportModel(path, {});
  EXPECT_EQ(*ReadData(*(*module)->graph.FindValue("w")), *ReadData(*(*original)->graph.FindValue("w")));
  EXPECT_EQ((*module)->graph.FindValue("w")->data.offset, 128);
  const std::vector<ExternalTensor> unknown[] = {{{"nope", "a", 0, 8}}};
  EXPECT_THAT(std::string(WithExternalData(path, unknown).status().message()), HasSubstr("nope"));
}

// int64 tensor of `count` entries, 0, 1, ..., that lies in `file` beside the model.
onnx::TensorProto Numbers(const std::string& name, int64_t count, const std::string& file) {
  std::string bytes;
  for (int64_t k = 0; k < count; ++k) bytes.append(reinterpret_cast<const char*>(&k), sizeof(k));
  WriteFile(file, std::string(8, 'x') + bytes);
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(onnx::TensorProto::INT64);
  proto.add_dims(count);
  proto.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, std::string>>{{"location", file}, {"offset", "8"}}) {
    auto& entry = *proto.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  return proto;
}

// What is no parameter comes along, also out of a branch: the rewritten model needs no file of the old one.
TEST(ExternalData, RewritingTakesTheOtherTensorsIn) {
  const std::string text =
      WriteFile("text.onnxtxt", Text(R"(g (float[2] x) => (y) <float[2] w = {1, 2}, int64[2] i = {0, 1}> {
      t = Add(x, w) yes = Constant <value = bool {1}> ()
      p = If(yes) <then_branch = a () => (q) <int64[2] j = {0, 1}> { q = Gather(t, j) }, else_branch = b () => (t) {}>
      y = Gather(p, i) })"));
  auto model = ReadModel(text);
  ASSERT_TRUE(model.ok());
  onnx::GraphProto& graph = *model->mutable_graph();
  for (auto& initializer : *graph.mutable_initializer()) {
    if (initializer.name() == "i") initializer = Numbers("i", 600, "i.bin");
  }
  for (auto& node : *graph.mutable_node()) {
    if (node.op_type() != "If") continue;
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.name() == "then_branch")
        *attribute.mutable_g()->mutable_initializer(0) = Numbers("j", 700, "j.bin");
    }
  }
  const std::string path = WriteFile("model.onnx", model->SerializeAsString());
  const std::vector<ExternalTensor> places[] = {{{"w", "plan.bin", 0, 8}}, {{"w", "export.bin", 0, 8}}};
  auto models = WithExternalData(path, places);
  ASSERT_TRUE(models.ok()) << models.status();
  std::filesystem::remove(TestFolder() / "i.bin");
  std::filesystem::remove(TestFolder() / "j.bin");
  WriteFile("plan.bin", "abcdefgh");
  WriteFile("export.bin", "abcdefgh");
  for (const std::string& rewritten : *models) {
    auto again = ImportModel(WriteFile("again.onnx", rewritten), {.evaluate = Evaluate});
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ((*again)->graph.outputs[0]->type.shape, Shape({600}));
    const std::string contents = *ReadData(*(*again)->graph.FindValue("i"));
    ASSERT_EQ(contents.size(), 600 * sizeof(int64_t));
    int64_t last;
    std::memcpy(&last, contents.data() + 599 * sizeof(last), sizeof(last));
    EXPECT_EQ(last, 599);
  }
}

TEST(ExternalData, TooMuchToTakeInIsRefusedByName) {
  onnx::TensorProto first = Numbers("first", 4, "a.bin"), second = Numbers("second", 4, "b.bin");
  ExternalDataResolver external(TestFolder().string(), /*allow_links=*/false, /*allow_missing=*/false);
  ExternalDataEmbedder embedder(external, 40);
  EXPECT_EQ(embedder.Embed(first), absl::OkStatus());
  EXPECT_EQ(first.raw_data().size(), 32);
  EXPECT_EQ(embedder.Embed(first), absl::OkStatus());  // nothing left to do
  const absl::Status status = embedder.Embed(second);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("'second'"), HasSubstr("int64[4]")));
}

}  // namespace
}  // namespace pipec
