#include "runtime/driver/training_scalars.h"

namespace pipec {

void TrainingScalars::Set(const TrainingSettings& settings, const Manifest& manifest, int64_t step,
                          const LossScaler* scaler, int lr_delay) {
  const Hyperparameters& h = settings.hyperparameters;
  const double factor = LrFactor(h.schedule, step, settings.steps, h.warmup_steps) *
                        DelayFactor(lr_delay, step, settings.steps, h.warmup_steps);
  parameters = settings.base;
  for (ParameterScalars& parameter : parameters) parameter.lr *= factor;
  microbatches.resize(int64_t{manifest.microbatches} * manifest.replicas);
  for (size_t k = 0; k < microbatches.size(); ++k) {
    StepScalars& s = microbatches[k];
    s.seed = settings.seed;
    s.step = step;
    s.updates = step - (scaler ? scaler->skipped_steps() : 0);
    s.loss_scale = scaler ? scaler->scale() : 1;
    s.microbatch = static_cast<int64_t>(k) % manifest.microbatches;
    s.first_sample = static_cast<int64_t>(k) * manifest.microbatch_size;
    s.valid_samples = manifest.microbatch_size;
    s.training = true;
    s.momentum = h.momentum.value_or(0);
    s.beta1 = h.beta1.value_or(0);
    s.beta2 = h.beta2.value_or(0);
    s.eps = h.eps.value_or(0);
    s.clip_norm = h.clip_norm;
    s.clip_value = h.clip_value;
    s.parameters = parameters.data();
  }
}

}  // namespace pipec
