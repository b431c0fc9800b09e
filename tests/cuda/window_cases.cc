#include "tests/cuda/window_cases.h"

#include <algorithm>
#include <vector>

#include "runtime/device/cpu/cpu_device.h"
#include "tests/cuda/draw.h"

namespace pipec {
namespace {

// Windows over 1 to 3 axes; the attributes say them.
struct DrawnWindows {
  Shape in, kernel, out;
  Attributes attributes;
};

DrawnWindows DrawWindows(Random& random, bool blind = false) {
  DrawnWindows w;
  const int64_t rank = Draw(random, 0, 3) == 0 ? 3 : Draw(random, 1, 2);
  constexpr const char* kModes[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
  const int64_t mode = Draw(random, 0, 1) ? 0 : Draw(random, 0, 3);
  const bool like_ends = Draw(random, 0, 1) != 0;
  std::vector<int64_t> strides, dilations, before, after;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t in = Draw(random, 1, rank == 3 ? 5 : 9), stride = Draw(random, 1, 3);
    const int64_t dilation = Draw(random, 0, 2) ? 1 : Draw(random, 1, 3);
    int64_t kernel = Draw(random, 1, 3);
    while ((kernel - 1) * dilation + 1 > in) --kernel;
    const int64_t reach = (kernel - 1) * dilation + 1;
    // Padding below the first tap's width: every window sees a place; but for pooling now and then none.
    const int64_t most = blind && Draw(random, 0, 3) == 0 ? kernel + 1 : dilation == 1 ? kernel - 1 : 0;
    before.push_back(mode == 0 ? Draw(random, 0, most) : 0);
    after.push_back(mode == 0 ? like_ends ? before.back() : Draw(random, 0, most) : 0);
    w.in.push_back(in), w.kernel.push_back(kernel), strides.push_back(stride), dilations.push_back(dilation);
    const int64_t out = (in + before.back() + after.back() - reach) / stride + 1;
    w.out.push_back(mode < 2 ? out : (in + stride - 1) / stride);
  }
  w.attributes.Set("kernel_shape", std::vector<int64_t>(w.kernel.begin(), w.kernel.end()));
  w.attributes.Set("strides", strides);
  w.attributes.Set("dilations", dilations);
  if (mode == 0) {
    before.insert(before.end(), after.begin(), after.end());
    w.attributes.Set("pads", before);
  } else {
    w.attributes.Set("auto_pad", std::string(kModes[mode]));
  }
  return w;
}

Shape Joined(Shape shape, const Shape& more) {
  shape.insert(shape.end(), more.begin(), more.end());
  return shape;
}

// X, W and Y of a convolution; transposed, the windows are X's and the places Y's.
struct DrawnConvolution {
  TensorType x, w, y;
  Attributes attributes;
};

DrawnConvolution DrawConvolution(Random& random, bool transposed) {
  DType dtype = AnyFloat(random);
  DrawnWindows windows = DrawWindows(random);
  const int64_t batch = Draw(random, 0, 19) ? Draw(random, 1, 3) : 0, groups = Draw(random, 1, 2);
  const int64_t x_channels = Draw(random, 1, 3), y_channels = Draw(random, 1, 3);
  windows.attributes.Set("group", groups);
  Shape out = windows.out;
  if (transposed) {
    // Either side of the windows' places, cut off by padding and longer at the end.
    const auto strides = windows.attributes.Ints("strides"), dilations = windows.attributes.Ints("dilations");
    const auto pads = windows.attributes.Ints("pads");
    const bool explicit_pads = !pads.empty();
    const bool shape_said = Draw(random, 0, 2) == 0;
    if (shape_said) dtype = DType::kFloat64;  // oneDNN knows no places that no window reaches
    windows.attributes = {};
    windows.attributes.Set("group", groups);
    windows.attributes.Set("strides", strides);
    windows.attributes.Set("dilations", dilations);
    std::vector<int64_t> extra;
    windows.in.swap(windows.out);  // the operand's places are the windows
    out.clear();
    for (size_t i = 0; i < strides.size(); ++i) {
      extra.push_back(Draw(random, 0, strides[i] - 1));
      const int64_t full =
          (windows.in[i] - 1) * strides[i] + extra[i] + (windows.kernel[i] - 1) * dilations[i] + 1;
      const int64_t cut = explicit_pads ? pads[i] + pads[strides.size() + i] : 0;
      out.push_back(shape_said ? std::max<int64_t>(1, full + Draw(random, -1, 2))
                               : std::max<int64_t>(full - cut, 0));
    }
    if (shape_said) {
      windows.attributes.Set("output_shape", std::vector<int64_t>(out.begin(), out.end()));
    } else if (explicit_pads) {
      windows.attributes.Set("pads", pads);
    }
    windows.attributes.Set("output_padding", extra);
  }
  DrawnConvolution c;
  c.x = {dtype, Joined({batch, groups * x_channels}, windows.in)};
  c.w = {dtype, transposed ? Joined({groups * x_channels, y_channels}, windows.kernel)
                           : Joined({groups * y_channels, x_channels}, windows.kernel)};
  c.y = {dtype, Joined({batch, groups * y_channels}, out)};
  c.attributes = windows.attributes;
  return c;
}

MakeCase Convolution(const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Named("", op);
    const DrawnConvolution drawn = DrawConvolution(random, op == "ConvTranspose");
    c.spec.attributes = drawn.attributes;
    AddInput(c, drawn.x, random);
    AddInput(c, drawn.w, random);
    if (Draw(random, 0, 1)) AddInput(c, {drawn.x.dtype, {drawn.y.shape[1]}}, random);
    c.spec.outputs = {{drawn.y}};
    return c;
  };
}

MakeCase ConvolutionGrad(const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Named("ai.pipec", op);
    const DrawnConvolution drawn = DrawConvolution(random, op.find("Transpose") != std::string::npos);
    const bool weights = op.find("Weight") != std::string::npos;
    const TensorType& result = weights ? drawn.w : drawn.x;
    c.spec.attributes = drawn.attributes;
    c.spec.attributes.Set("shape", std::vector<int64_t>(result.shape.begin(), result.shape.end()));
    AddInput(c, drawn.y, random);
    AddInput(c, weights ? drawn.x : drawn.w, random);
    c.spec.outputs = {{result}};
    return c;
  };
}

// Of the last axes' windows, one more that ceil_mode counts.
Attributes Pooling(DrawnWindows& windows, Random& random) {
  Attributes attributes = windows.attributes;
  if (attributes.Has("auto_pad") && attributes.String("auto_pad") != "VALID") return attributes;
  if (Draw(random, 0, 1)) return attributes;
  attributes.Set("ceil_mode", int64_t{1});
  const auto strides = attributes.Ints("strides"), dilations = attributes.Ints("dilations"),
             pads = attributes.Ints("pads");
  for (size_t i = 0; i < strides.size(); ++i) {
    const int64_t before = pads.empty() ? 0 : pads[i], after = pads.empty() ? 0 : pads[strides.size() + i];
    const int64_t room = windows.in[i] + before + after - (windows.kernel[i] - 1) * dilations[i] - 1;
    if (room % strides[i] != 0 && windows.out[i] * strides[i] < windows.in[i] + before) ++windows.out[i];
  }
  return attributes;
}

TensorType Planes(Random& random, const Shape& places) {
  return {AnyFloat(random),
          Joined({Draw(random, 0, 19) ? Draw(random, 1, 3) : 0, Draw(random, 1, 4)}, places)};
}

// Few different values: there are ties.
std::string Coarse(const TensorType& type, Random& random) {
  const std::string values = RandomContents({type.dtype, {4}}, random);
  const int64_t size = SizeOf(type.dtype);
  std::string all;
  for (int64_t i = 0; i < type.elements(); ++i) all += values.substr(Draw(random, 0, 3) * size, size);
  return all;
}

MakeCase Pool(const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Named("", op);
    DrawnWindows windows = DrawWindows(random, op == "MaxPool");
    c.spec.attributes = Pooling(windows, random);
    const TensorType x = Planes(random, windows.in);
    AddInput(c, x, random, false);
    if (op == "MaxPool") c.inputs[0] = Coarse(x, random);
    if (op == "LpPool") c.spec.attributes.Set("p", Draw(random, 1, 3));
    if (op == "AveragePool") c.spec.attributes.Set("count_include_pad", Draw(random, 0, 1));
    c.spec.outputs = {{{x.dtype, Joined({x.shape[0], x.shape[1]}, windows.out)}}};
    if (op == "MaxPool" && Draw(random, 0, 2)) {
      c.spec.outputs.push_back({{DType::kInt64, c.spec.outputs[0].type.shape}});
      c.spec.attributes.Set("storage_order", Draw(random, 0, 1));
    }
    return c;
  };
}

MakeCase GlobalPool(const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Named("", op);
    Shape places{Draw(random, 1, 9)};
    if (Draw(random, 0, 1)) places.push_back(Draw(random, 1, 9));
    if (Draw(random, 0, 9) == 0) places.push_back(64);
    const TensorType x = Planes(random, places);
    AddInput(c, x, random);
    if (op == "GlobalLpPool") c.spec.attributes.Set("p", Draw(random, 1, 3));
    c.spec.outputs = {{{x.dtype, Joined({x.shape[0], x.shape[1]}, Shape(places.size(), 1))}}};
    return c;
  };
}

// What the CPU's MaxPool says of X is what MaxPoolGrad reads.
KernelCase MaxPoolGrad(Random& random) {
  KernelCase forward = Pool("MaxPool")(random);
  const TensorType x = forward.spec.inputs[0].type, y = forward.spec.outputs[0].type;
  forward.spec.outputs = {{y}, {{DType::kInt64, y.shape}}};
  const auto pooled = RunCase(*MakeCpuDevice(1), forward);
  KernelCase c = Named("ai.pipec", "MaxPoolGrad");
  c.spec.attributes = forward.spec.attributes;
  c.spec.attributes.Set("shape", std::vector<int64_t>(x.shape.begin(), x.shape.end()));
  AddInput(c, y, random);
  c.spec.inputs.push_back({{DType::kInt64, y.shape}});
  c.inputs.push_back(pooled.ok() ? pooled->at(1) : "");
  c.spec.outputs = {{x}};
  return c;
}

KernelCase AveragePoolGrad(Random& random) {
  KernelCase c = Named("ai.pipec", "AveragePoolGrad");
  const KernelCase forward = Pool("AveragePool")(random);
  const TensorType x = forward.spec.inputs[0].type;
  c.spec.attributes = forward.spec.attributes;
  c.spec.attributes.Set("shape", std::vector<int64_t>(x.shape.begin(), x.shape.end()));
  AddInput(c, forward.spec.outputs[0].type, random);
  c.spec.outputs = {{x}};
  return c;
}

}  // namespace

void AddWindowCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases) {
  for (const char* op : {"Conv", "ConvTranspose"}) cases[{"", op}] = Convolution(op);
  for (const char* op :
       {"ConvInputGrad", "ConvWeightGrad", "ConvTransposeInputGrad", "ConvTransposeWeightGrad"}) {
    cases[{"ai.pipec", op}] = ConvolutionGrad(op);
  }
  for (const char* op : {"AveragePool", "LpPool", "MaxPool"}) cases[{"", op}] = Pool(op);
  for (const char* op : {"GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"})
    cases[{"", op}] = GlobalPool(op);
  cases[{"ai.pipec", "MaxPoolGrad"}] = MaxPoolGrad;
  cases[{"ai.pipec", "AveragePoolGrad"}] = AveragePoolGrad;
}

}  // namespace pipec
