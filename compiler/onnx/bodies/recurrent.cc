// RNNGrad, GRUGrad and LSTMGrad, step by step: the forward pass again, then the steps backwards, with the names
// of runtime/device/cpu/kernels/recurrent_grad.cc. A direction that goes backwards reads its rows reversed, each
// sample's as far as its sequence is long.
#include "compiler/onnx/bodies/families.h"
#include "compiler/onnx/bodies/recurrent_activation.h"

namespace pipec {
namespace {

using Name = Body::Name;
using Names = Body::Names;
using Dims = std::vector<int64_t>;

enum Operand { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kDY, kDYh, kDYc };

// One direction.
class Direction {
 public:
  Direction(Body& b, int64_t gates, int64_t direction, std::vector<GateActivation> activations)
      : b_(b), gates_(gates), direction_(direction), activations_(std::move(activations)) {
    batch_first_ = b.attributes().Int("layout") != 0;
    steps_ = b.shape(kX)[batch_first_ ? 1 : 0];
    batch_ = b.shape(kX)[batch_first_ ? 0 : 1];
    hidden_ = b.shape(kR)[2];
    dtype_ = b.type(kX).dtype;
    reversed_ = direction == 1 || b.attributes().String("direction", "forward") == "reverse";
    zero_ = b.Scalar(dtype_, 0);
    one_ = b.Scalar(dtype_, 1);
    w_ = Own(b.in(kW), 0);
    r_ = Own(b.in(kR), 0);
    if (b.has(kB))
      bias_ = b.Ops("Split", {Own(b.in(kB), 0)}, {{"axis", int64_t{0}}, {"num_outputs", int64_t{2}}}, 2);
    lengths_ = b.has(kLengths) ? b.Cast(b.in(kLengths), DType::kInt64)
                               : b.Full(DType::kInt64, Dims{batch_}, static_cast<double>(steps_));
    if (b.has(kLengths)) {
      for (int64_t step = 0; step < steps_; ++step) {
        const Name there = b.Op("Less", {b.Scalar(DType::kInt64, static_cast<double>(step)), lengths_});
        masks_.push_back(b.Op("Unsqueeze", {there, b.Ints({1})}));
      }
    }
  }
  virtual ~Direction() = default;

  struct Results {
    Name d_x, d_gates, h, d_initial_h, more;  // rows [T, batch, ...], states [batch, H]
  };

  Results Run() {
    const Name x = InStepOrder(TimeFirst(b_.in(kX)));
    const Names inputs = Steps(b_.Op("MatMul", {x, Transposed(w_)}));
    Name h = Begin(kInitialH), c = Begin(kInitialC);
    for (int64_t step = 0; step < steps_; ++step) {
      h_before_.push_back(h);
      const Name next = Forward(inputs[step], h, &c);
      h = Choose(step, next, h);
    }
    Name dh = Begin(kDYh), dc = Begin(kDYc);
    Names d_y;
    if (b_.has(kDY)) d_y = Steps(InStepOrder(OwnRows(b_.in(kDY))));
    Names d_gates(steps_), more(steps_);
    for (int64_t step = steps_; step-- > 0;) {
      const Name entered = d_y.empty() ? dh : b_.Add(dh, d_y[step]);
      Name dc_before = dc;
      const Step made = Backward(step, entered, &dc_before);
      d_gates[step] = Choose(step, made.d_gates, zero_);
      if (!made.more.empty()) more[step] = Choose(step, made.more, zero_);
      dh = Choose(step, made.dh, dh);
      dc = Choose(step, dc_before, dc);
      h_before_[step] = Choose(step, h_before_[step], zero_);
    }
    Results results;
    const Name rows = InStepOrder(Stacked(d_gates));
    results.d_x = b_.Op("MatMul", {rows, w_});
    results.d_gates = rows;
    results.h = InStepOrder(Stacked(h_before_));
    results.d_initial_h = dh;
    results.more = more[0].empty() ? dc : InStepOrder(Stacked(more));
    return results;
  }

 protected:
  struct Step {
    Name d_gates, dh, more;  // dh: of the state before
  };
  // The state after a step from what X gives its gates; the cell is read and written.
  virtual Name Forward(const Name& input, const Name& h, Name* c) = 0;
  // `dh`, `dc`: the gradients behind the step; `dc` becomes that before it.
  virtual Step Backward(int64_t step, const Name& dh, Name* dc) = 0;

  Name Transposed(Name x) { return b_.Transpose(std::move(x), {1, 0}); }
  Name Times(Name a, Name b) { return b_.Mul(std::move(a), std::move(b)); }
  Name OneMinus(Name x) { return b_.Sub(one_, std::move(x)); }
  // Gates first .. end of the last axis (axis 1), or of the rows of R (axis 0).
  Name Gates(Name x, int64_t first, int64_t end, int64_t axis) {
    return b_.Op("Slice",
                 {std::move(x), b_.Ints({first * hidden_}), b_.Ints({end * hidden_}), b_.Ints({axis})});
  }
  Names Each(Name x) {
    return b_.Ops("Split", {std::move(x)}, {{"axis", int64_t{1}}, {"num_outputs", gates_}},
                  static_cast<int>(gates_));
  }
  Name Joined(Names parts) { return b_.Op("Concat", std::move(parts), {{"axis", int64_t{1}}}); }
  Name WithBias(Name x, const Name& bias) { return bias.empty() ? x : b_.Add(std::move(x), bias); }
  Name WBias() const { return bias_.empty() ? "" : bias_[0]; }
  Name RBias() const { return bias_.empty() ? "" : bias_[1]; }
  Name Activate(int which, Name x) { return ActivateGate(b_, dtype_, activations_[which], std::move(x)); }
  Name TimesSlope(int which, const Name& y, Name dy) {
    return b_.Mul(std::move(dy), GateSlope(b_, dtype_, activations_[which], y));
  }
  // This step's value for samples whose sequence has it, else the other.
  Name Choose(int64_t step, const Name& there, const Name& otherwise) {
    return masks_.empty() || there == otherwise || there.empty() ? there
                                                                 : b_.Where(masks_[step], there, otherwise);
  }

  Body& b_;
  int64_t gates_, direction_, steps_, batch_, hidden_;
  DType dtype_;
  std::vector<GateActivation> activations_;
  Name zero_, one_, w_, r_, lengths_;
  Names bias_, masks_, h_before_;

 private:
  // Entry `direction_` of an axis, which goes.
  Name Own(Name x, int64_t axis) {
    return b_.Op("Gather", {std::move(x), b_.Scalar(DType::kInt64, static_cast<double>(direction_))},
                 {{"axis", axis}});
  }
  Name TimeFirst(Name x) { return batch_first_ ? b_.Transpose(std::move(x), {1, 0, 2}) : x; }
  // [T, D, batch, H] or [batch, T, D, H] -> [T, batch, H]
  Name OwnRows(Name y) { return TimeFirst(Own(std::move(y), batch_first_ ? 2 : 1)); }
  Name Begin(int operand) {
    if (!b_.has(operand)) return b_.Full(dtype_, Dims{batch_, hidden_}, 0);
    return Own(b_.in(operand), batch_first_ ? 1 : 0);
  }
  // Its own inverse.
  Name InStepOrder(Name x) {
    if (!reversed_) return x;
    return b_.Op("ReverseSequence", {std::move(x), lengths_},
                 {{"time_axis", int64_t{0}}, {"batch_axis", int64_t{1}}});
  }
  Names Steps(Name rows) {
    Names steps;
    for (int64_t t = 0; t < steps_; ++t)
      steps.push_back(
          b_.Op("Gather", {rows, b_.Scalar(DType::kInt64, static_cast<double>(t))}, {{"axis", int64_t{0}}}));
    return steps;
  }
  Name Stacked(const Names& steps) {
    Names rows;
    for (const Name& step : steps) rows.push_back(b_.Op("Unsqueeze", {step, b_.Ints({0})}));
    return b_.Op("Concat", std::move(rows), {{"axis", int64_t{0}}});
  }

  bool batch_first_, reversed_;
};

class Rnn : public Direction {
  using Direction::Direction;
  Name Forward(const Name& input, const Name& h, Name*) override {
    const Name inside = b_.Add(input, b_.Op("MatMul", {h, Transposed(r_)}));
    y_.push_back(Activate(0, WithBias(WithBias(inside, WBias()), RBias())));
    return y_.back();
  }
  Step Backward(int64_t step, const Name& dh, Name*) override {
    const Name d = TimesSlope(0, y_[step], dh);
    return {d, b_.Op("MatMul", {d, r_}), ""};
  }
  Names y_;
};

class Lstm : public Direction {
  using Direction::Direction;
  struct Kept {
    Name i, o, forget, g, c, through;  // c: before the step; through: h(C)
  };
  bool couples() const { return b_.attributes().Int("input_forget") != 0; }
  Name Forward(const Name& input, const Name& h, Name* c) override {
    const Name inside = b_.Add(input, b_.Op("MatMul", {h, Transposed(r_)}));
    const Names gates = Each(WithBias(WithBias(inside, WBias()), RBias()));
    Kept k{Activate(0, gates[0]), Activate(0, gates[1]), "", Activate(1, gates[3]), *c};
    k.forget = couples() ? OneMinus(k.i) : Activate(0, gates[2]);
    const Name next = b_.Add(Times(k.forget, *c), Times(k.i, k.g));
    k.through = Activate(2, next);
    *c = Choose(static_cast<int64_t>(kept_.size()), next, *c);
    kept_.push_back(k);
    return Times(k.o, k.through);
  }
  Step Backward(int64_t step, const Name& dh, Name* dc) override {
    const Kept& k = kept_[step];
    const Name d_o = Times(dh, k.through);
    const Name d = b_.Add(*dc, TimesSlope(2, k.through, Times(dh, k.o)));
    Name di = Times(d, k.g), d_forget = Times(d, k.c);
    if (couples()) {
      di = b_.Sub(di, d_forget);
      d_forget = b_.Sub(d_forget, d_forget);
    }
    *dc = Times(d, k.forget);
    const Name gates = Joined({TimesSlope(0, k.i, di), TimesSlope(0, k.o, d_o),
                               TimesSlope(0, k.forget, d_forget), TimesSlope(1, k.g, Times(d, k.i))});
    return {gates, b_.Op("MatMul", {gates, r_}), ""};
  }
  std::vector<Kept> kept_;
};

class Gru : public Direction {
  using Direction::Direction;
  struct Kept {
    Name z, r, g, inside;  // inside: what r multiplies, with linear_before_reset
  };
  bool linear() const { return b_.attributes().Int("linear_before_reset") != 0; }
  // The rows of R, or the entries of a bias, of the gates first .. end.
  Name Rows(const Name& x, int64_t first, int64_t end) { return x.empty() ? "" : Gates(x, first, end, 0); }
  Name Forward(const Name& input, const Name& h, Name*) override {
    const Name both = b_.Add(Gates(input, 0, 2, 1), b_.Op("MatMul", {h, Transposed(Rows(r_, 0, 2))}));
    const Name zr = WithBias(WithBias(both, Rows(WBias(), 0, 2)), Rows(RBias(), 0, 2));
    Kept k{Activate(0, Gates(zr, 0, 1, 1)), Activate(0, Gates(zr, 1, 2, 1))};
    const Name own = WithBias(Gates(input, 2, 3, 1), Rows(WBias(), 2, 3)), r = Transposed(Rows(r_, 2, 3));
    if (linear()) {
      k.inside = WithBias(b_.Op("MatMul", {h, r}), Rows(RBias(), 2, 3));
      k.g = Activate(1, b_.Add(own, Times(k.r, k.inside)));
    } else {
      k.g = Activate(1, WithBias(b_.Add(own, b_.Op("MatMul", {Times(k.r, h), r})), Rows(RBias(), 2, 3)));
    }
    kept_.push_back(k);
    return b_.Add(Times(OneMinus(k.z), k.g), Times(k.z, h));
  }
  Step Backward(int64_t step, const Name& dh, Name*) override {
    const Kept& k = kept_[step];
    const Name& h = h_before_[step];
    const Name dz = TimesSlope(0, k.z, Times(dh, b_.Sub(h, k.g)));
    const Name dg = TimesSlope(1, k.g, Times(dh, OneMinus(k.z)));
    Name direct = Times(dh, k.z), dr, more, state_gates, r = r_;
    if (linear()) {
      more = Times(dg, k.r);
      dr = TimesSlope(0, k.r, Times(dg, k.inside));
      state_gates = Joined({dz, dr, more});
    } else {
      const Name through = b_.Op("MatMul", {dg, Rows(r_, 2, 3)});
      more = Times(k.r, h);
      dr = TimesSlope(0, k.r, Times(through, h));
      direct = b_.Add(direct, Times(through, k.r));
      state_gates = Joined({dz, dr});
      r = Rows(r_, 0, 2);
    }
    return {Joined({dz, dr, dg}), b_.Add(direct, b_.Op("MatMul", {state_gates, r})), more};
  }
  std::vector<Kept> kept_;
};

// Results of the directions, side by side.
template <typename Cell>
void Recurrent(Body& b, int64_t gates, const std::vector<std::string>& otherwise) {
  const bool batch_first = b.attributes().Int("layout") != 0;
  const int64_t directions = b.shape(kW)[0], steps = b.shape(kX)[batch_first ? 1 : 0],
                batch = b.shape(kX)[batch_first ? 0 : 1];
  const std::vector<GateActivation> all = ReadGateActivations(b.attributes(), directions, otherwise);
  Name d_x;
  Names d_gates, h, d_h, more;
  for (int64_t d = 0; d < directions; ++d) {
    const auto first = all.begin() + d * static_cast<int64_t>(otherwise.size());
    const auto made = Cell(b, gates, d, {first, first + static_cast<int64_t>(otherwise.size())}).Run();
    d_x = d == 0 ? made.d_x : b.Add(d_x, made.d_x);
    d_gates.push_back(made.d_gates);
    h.push_back(made.h);
    d_h.push_back(made.d_initial_h);
    more.push_back(made.more);
  }
  // Rows lie as the rows of X do.
  const auto rows = [&](const Names& parts, int64_t width) {
    Names flat;
    for (const Name& part : parts) {
      const Name turned = batch_first ? b.Transpose(part, {1, 0, 2}) : part;
      flat.push_back(b.Reshape(turned, {1, steps * batch, width}));
    }
    return b.Op("Concat", std::move(flat), {{"axis", int64_t{0}}});
  };
  const auto states = [&](const Names& parts) {
    Names each;
    for (const Name& part : parts) each.push_back(b.Op("Unsqueeze", {part, b.Ints({batch_first ? 1 : 0})}));
    return b.Op("Concat", std::move(each), {{"axis", int64_t{batch_first ? 1 : 0}}});
  };
  const int64_t hidden = b.shape(kR)[2];
  b.Result(0, batch_first ? b.Transpose(d_x, {1, 0, 2}) : d_x);
  b.Result(1, rows(d_gates, gates * hidden));
  b.Result(2, rows(h, hidden));
  b.Result(3, states(d_h));
  if (gates == 4) b.Result(4, states(more));
  if (gates == 3) b.Result(4, rows(more, hidden));
}

void RnnGrad(Body& b) { Recurrent<Rnn>(b, 1, {"Tanh"}); }
void GruGrad(Body& b) { Recurrent<Gru>(b, 3, {"Sigmoid", "Tanh"}); }
void LstmGrad(Body& b) { Recurrent<Lstm>(b, 4, {"Sigmoid", "Tanh", "Tanh"}); }

constexpr char kOperands[] = "X W R B sequence_lens initial_h initial_c dY dY_h dY_c";
const BodyRow kRows[] = {{"RNNGrad", kOperands, "", RnnGrad},
                         {"GRUGrad", kOperands, "", GruGrad},
                         {"LSTMGrad", kOperands, "", LstmGrad}};

}  // namespace

absl::Span<const BodyRow> RecurrentBodies() { return kRows; }

}  // namespace pipec
