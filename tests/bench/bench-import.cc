// Large models. Case B01: 24 Gemm layers whose 2.5 GB of weights lie in one file of holes: pipec's memory and
// time, and whether four ranks give what one gives. A model of 100,000 nodes: read, checked, typed; and how
// that grows with the number of nodes.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "compiler/ir/verify.h"
#include "compiler/onnx/import.h"
#include "onnx/onnx_pb.h"
#include "passes/evaluate.h"
#include "runtime/data/npz.h"
#include "tests/bench/run_program.h"

namespace pipec::bench {
namespace {

using Strings = std::vector<std::string>;

void AddTypeOf(onnx::ValueInfoProto* info, const std::string& name, const Strings& dims) {
  info->set_name(name);
  auto* type = info->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  for (const std::string& dim : dims) {
    auto* entry = type->mutable_shape()->add_dim();
    if (dim[0] >= '0' && dim[0] <= '9') {
      entry->set_dim_value(std::stoll(dim));
    } else {
      entry->set_dim_param(dim);
    }
  }
}

class ModelBuilder {
 public:
  ModelBuilder() {
    model_.set_ir_version(10);
    model_.add_opset_import()->set_version(18);
    model_.mutable_graph()->set_name("bench");
  }

  onnx::ModelProto& model() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  onnx::NodeProto* Node(const std::string& op, const Strings& inputs, const std::string& output) {
    onnx::NodeProto* node = graph().add_node();
    node->set_op_type(op);
    node->set_name("/" + output + "/" + op);
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    return node;
  }
  void SetInt(onnx::NodeProto* node, const char* name, int64_t value) {
    auto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  void SetInts(onnx::NodeProto* node, const char* name, const std::vector<int64_t>& values) {
    auto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INTS);
    for (int64_t value : values) attribute->add_ints(value);
  }
  // A Constant node of int64, as exporters write shape arithmetic.
  std::string Ints(const std::string& name, const std::vector<int64_t>& values, bool scalar = false) {
    auto* attribute = Node("Constant", {}, name)->add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    auto* tensor = attribute->mutable_t();
    tensor->set_data_type(onnx::TensorProto::INT64);
    if (!scalar) tensor->add_dims(static_cast<int64_t>(values.size()));
    tensor->set_raw_data(values.data(), values.size() * sizeof(int64_t));
    return name;
  }
  std::string Weight(const std::string& name, const std::vector<int64_t>& dims) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    int64_t elements = 1;
    for (int64_t dim : dims) {
      tensor->add_dims(dim);
      elements *= dim;
    }
    const std::vector<float> values(elements, 0.01f);
    tensor->set_raw_data(values.data(), values.size() * sizeof(float));
    return name;
  }

 private:
  onnx::ModelProto model_;
};

constexpr int64_t kWidth = 16, kHeads = 4;

// x, cut into heads with shape arithmetic on the symbolic batch, as PyTorch's exporters write it: 10 nodes.
std::string Heads(ModelBuilder& b, const std::string& p, const std::string& x,
                  const std::vector<int64_t>& perm) {
  b.Node("Shape", {x}, p + "shape");
  b.Node("Gather", {p + "shape", b.Ints(p + "zero", {0}, true)}, p + "batch");
  b.Node("Unsqueeze", {p + "batch", b.Ints(p + "axes", {0})}, p + "rows");
  b.SetInt(b.Node("Concat", {p + "rows", b.Ints(p + "rest", {-1, kHeads, kWidth / kHeads})}, p + "dims"),
           "axis", 0);
  b.Node("Reshape", {x, p + "dims"}, p + "split");
  b.SetInts(b.Node("Transpose", {p + "split"}, p + "heads"), "perm", perm);
  return p + "heads";
}

std::string Linear(ModelBuilder& b, const std::string& p, const std::string& x, int64_t in, int64_t out) {
  b.Node("MatMul", {x, b.Weight(p + "weight", {in, out})}, p + "product");
  b.Node("Add", {p + "product", b.Weight(p + "bias", {out})}, p + "sum");
  return p + "sum";
}

std::string Norm(ModelBuilder& b, const std::string& p, const std::string& x) {
  b.SetInt(b.Node("LayerNormalization", {x, b.Weight(p + "scale", {kWidth}), b.Weight(p + "shift", {kWidth})},
                  p + "normal"),
           "axis", -1);
  return p + "normal";
}

// One transformer block and a small network behind it, with residuals.
std::string Block(ModelBuilder& b, const std::string& p, const std::string& x) {
  const std::string normal = Norm(b, p + "ln1.", x);
  const std::string q = Heads(b, p + "q.", Linear(b, p + "q.", normal, kWidth, kWidth), {0, 2, 1, 3});
  const std::string k = Heads(b, p + "k.", Linear(b, p + "k.", normal, kWidth, kWidth), {0, 2, 3, 1});
  const std::string v = Heads(b, p + "v.", Linear(b, p + "v.", normal, kWidth, kWidth), {0, 2, 1, 3});
  b.Node("MatMul", {q, k}, p + "scores");
  b.SetInt(b.Node("Softmax", {p + "scores"}, p + "weights"), "axis", -1);
  b.Node("MatMul", {p + "weights", v}, p + "mixed");
  b.SetInts(b.Node("Transpose", {p + "mixed"}, p + "back"), "perm", {0, 2, 1, 3});
  b.Node("Reshape", {p + "back", b.Ints(p + "merged", {0, -1, kWidth})}, p + "joined");
  b.Node("Add", {x, Linear(b, p + "o.", p + "joined", kWidth, kWidth)}, p + "residual");
  const std::string hidden = Linear(b, p + "up.", Norm(b, p + "ln2.", p + "residual"), kWidth, 2 * kWidth);
  b.Node("Erf", {hidden}, p + "erf");
  b.Node("Mul", {hidden, p + "erf"}, p + "act");
  b.Node("Add", {p + "residual", Linear(b, p + "down.", p + "act", 2 * kWidth, kWidth)}, p + "out");
  return p + "out";
}

void WriteBlocks(const std::string& path, int nodes) {
  ModelBuilder b;
  AddTypeOf(b.graph().add_input(), "x", {"batch", "8", std::to_string(kWidth)});
  std::string x = "x";
  for (int k = 0; b.graph().node_size() < nodes; ++k) x = Block(b, "layers." + std::to_string(k) + ".", x);
  AddTypeOf(b.graph().add_output(), x, {"batch", "8", std::to_string(kWidth)});
  std::ofstream file(path, std::ios::binary);
  b.model().SerializeToOstream(&file);
}

// Runs `work` in a process of its own, whose time and memory are its own.
Outcome InChild(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t pid = fork();
  if (pid == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  rusage usage{};
  wait4(pid, &status, 0, &usage);
  if (pid < 0 || status != 0) std::exit(1);
  const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
  Outcome outcome;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  outcome.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  outcome.peak_bytes = static_cast<double>(usage.ru_maxrss) * 1024;
  return outcome;
}

// Reads, checks, types and verifies the model.
void Import(const std::string& path) {
  ImportOptions options;
  options.evaluate = Evaluate;
  const auto module = ImportModel(path, options);
  if (!module.ok() || !VerifyModel(**module).ok()) {
    std::fprintf(stderr, "bench-import: %s\n", module.status().ToString().c_str());
    _exit(1);
  }
}

// The best of five.
Outcome TimeImport(const std::string& path) {
  Outcome best = InChild([&] { Import(path); });
  for (int k = 1; k < 5; ++k) {
    const Outcome outcome = InChild([&] { Import(path); });
    best.seconds = std::min(best.seconds, outcome.seconds);
    best.cpu_seconds = std::min(best.cpu_seconds, outcome.cpu_seconds);
  }
  return best;
}

void ManyNodes(const ScratchFolder& folder) {
  const std::string path = folder / "nodes.onnx";
  std::map<int, double> cpu_seconds;
  for (int thousands : {25, 50, 100}) {
    InChild([&] { WriteBlocks(path, thousands * 1000); });
    const Outcome import = TimeImport(path);
    cpu_seconds[thousands] = import.cpu_seconds;
    std::printf("import_seconds_%dk_nodes %.3f s\n", thousands, import.seconds);
    std::printf("import_peak_%dk_nodes %.1f MB\n", thousands, import.peak_bytes * 1e-6);
    if (thousands != 100) continue;
    const Outcome whole = MustRun({"pipec", path, "--mode=infer", "--stages=4", "--dry-run", "--json"});
    std::printf("import_dry_run_100k_nodes %.3f s\n", whole.seconds);
    std::printf("import_dry_run_peak_100k_nodes %.1f MB\n", whole.peak_bytes * 1e-6);
  }
  // CPU time a node, over that of half as many nodes: above 1 it grows faster than the model.
  double growth = 0;
  for (int thousands : {50, 100})
    growth = std::max(growth, cpu_seconds[thousands] / cpu_seconds[thousands / 2] / 2);
  std::printf("import_growth %.3f ratio\n", growth);
}

constexpr int kB01Layers = 24;
constexpr int64_t kB01Width = 5120;

// 24 blocks of Gemm and Relu. The weights are holes but for some rows, so that the result is no constant.
void WriteB01(const ScratchFolder& folder) {
  ModelBuilder b;
  const std::string width = std::to_string(kB01Width);
  AddTypeOf(b.graph().add_input(), "x", {"batch", width});
  AddTypeOf(b.graph().add_output(), "y", {"batch", width});
  std::ofstream file(folder / "weights.bin", std::ios::binary);
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-0.3f, 0.3f);
  int64_t end = 0;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& dims, int64_t written) {
    auto* tensor = b.graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    int64_t bytes = sizeof(float);
    for (int64_t dim : dims) {
      tensor->add_dims(dim);
      bytes *= dim;
    }
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : std::map<std::string, std::string>{{"location", "weights.bin"},
                                                                       {"offset", std::to_string(end)},
                                                                       {"length", std::to_string(bytes)}}) {
      auto* entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    std::vector<float> values(written);
    for (float& value : values) value = uniform(random);
    file.seekp(end);
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(written * sizeof(float)));
    end += bytes;
    return name;
  };
  std::string x = "x";
  for (int k = 0; k < kB01Layers; ++k) {
    const std::string n = std::to_string(k);
    b.Node("Gemm",
           {x, add("w" + n, {kB01Width, kB01Width}, 16 * kB01Width), add("b" + n, {kB01Width}, kB01Width)},
           "a" + n);
    x = k + 1 == kB01Layers ? "y" : "h" + n;
    b.Node("Relu", {"a" + n}, x);
  }
  std::ofstream model(folder / "big.onnx", std::ios::binary);
  b.model().SerializeToOstream(&model);
}

void ManyWeights(const ScratchFolder& folder) {
  WriteB01(folder);
  Outcome worst;
  std::vector<NamedArrays> outputs;
  for (const char* ranks : {"4", "1"}) {
    const std::string plan = folder / "big.plan", out = folder / "out.npz";
    const Outcome compiled = MustRun({"pipec", folder / "big.onnx", "-o", plan, "--mode=infer",
                                      std::string("--stages=") + ranks, "--microbatches=2", "--memory=1TB"});
    if (ranks[0] == '4') worst = compiled;
    MustRun({"piperun", plan, "--data=synthetic", "--epochs=1", "--outputs=" + out});
    auto read = ReadNpz(out, {});
    if (!read.ok()) std::exit(1);
    outputs.push_back(*std::move(read));
  }
  const Outcome train = MustRun({"pipec", folder / "big.onnx", "-o", folder / "train.plan", "--loss=mse",
                                 "--stages=4", "--memory=1TB"});
  const bool equal = outputs[0].at("y").bytes == outputs[1].at("y").bytes;
  std::printf("import_b01_equal_outputs %d of 1\n", equal ? 1 : 0);
  std::printf("import_b01_peak_rss_mb %.1f MB\n", std::max(worst.peak_bytes, train.peak_bytes) * 1e-6);
  std::printf("import_b01_seconds %.3f s\n", std::max(worst.seconds, train.seconds));
}

}  // namespace
}  // namespace pipec::bench

int main() {
  const pipec::bench::ScratchFolder folder;
  pipec::bench::ManyNodes(folder);
  pipec::bench::ManyWeights(folder);
}
