// RNN, GRU and LSTM and their gradients read from an instruction: (X, W, R, B?, sequence_lens?, initial_h?, ...) ->
// (Y?, Y_h?, ...), gate by gate as ONNX orders them. T steps, samples of the batch, directions, H hidden:
//   X (T, batch, input), W (directions, gates * H, input), R (directions, gates * H, H), B (directions, 2 * gates * H),
//   Y (T, directions, batch, H), Y_h (directions, batch, H); with layout 1 the batch comes first in X, Y and the
//   states.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec {

// What RNN, GRU and LSTM name in their attributes.
enum class ActivationKind {
  kRelu,
  kTanh,
  kSigmoid,
  kAffine,
  kLeakyRelu,
  kThresholdedRelu,
  kScaledTanh,
  kHardSigmoid,
  kElu,
  kSoftsign,
  kSoftplus
};

struct Activation {
  ActivationKind kind = ActivationKind::kTanh;
  float alpha = 0, beta = 0;
};

struct Recurrence {
  int64_t steps = 0, batch = 0, input = 0, hidden = 0, gates = 0;
  int directions = 1;
  bool first_reversed = false;  // direction 0 goes backwards; direction 1 always does
  bool batch_first = false;
  bool has_bias = false, has_lengths = false, has_initial_h = false;
  bool linear_before_reset = false;     // GRU
  bool input_forget = false;            // LSTM
  float clip = 0;                       // of what enters an activation; 0: none
  std::vector<Activation> activations;  // of direction 0, then of direction 1

  // The place of step t of a sample among the rows of X.
  int64_t XRow(int64_t t, int64_t sample) const {
    return batch_first ? sample * steps + t : t * batch + sample;
  }
  int64_t YRow(int64_t t, int direction, int64_t sample) const {
    return batch_first ? (sample * steps + t) * directions + direction
                       : (t * directions + direction) * batch + sample;
  }
  int64_t StateRow(int direction, int64_t sample) const {
    return batch_first ? sample * directions + direction : direction * batch + sample;
  }
};

// The operands and results that each op has, and its attributes. InvalidArgument if they do not fit.
absl::StatusOr<Recurrence> ReadRnn(const KernelSpec& spec);
absl::StatusOr<Recurrence> ReadGru(const KernelSpec& spec);
absl::StatusOr<Recurrence> ReadLstm(const KernelSpec& spec);

// Of RNNGrad, GRUGrad and LSTMGrad: (X, W, R, B?, sequence_lens?, initial_h?, initial_c?, dY?, dY_h?, dY_c?) ->
// (dX, dGates, H, dInitial_h, more?). dGates and H have a row for each row of X, (directions, T * batch, gates * H)
// and (directions, T * batch, H): the gradient of what enters the gates' activations, and the state before the
// step; the weights' gradients are products of them. `more` is dInitial_c (LSTM) or has such rows too (GRU).
// Unimplemented if an activation's slope cannot be told from its result, or gates are clipped.
absl::StatusOr<Recurrence> ReadRnnGrad(const KernelSpec& spec);
absl::StatusOr<Recurrence> ReadGruGrad(const KernelSpec& spec);
absl::StatusOr<Recurrence> ReadLstmGrad(const KernelSpec& spec);

}  // namespace pipec
