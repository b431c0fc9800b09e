// What a GPU did, as NVIDIA's Nsight Systems tells it.
#pragma once

#include <optional>
#include <string>

namespace pipec::bench {

// `csv`: what `nsys stats --report cuda_gpu_trace --format csv` prints, kernels and copies of all streams, a
// graph's one by one. In the second half of them, by their begin: the share of the time in which none of them runs.
// Nothing without two such lines.
std::optional<double> IdleShare(const std::string& csv);

}  // namespace pipec::bench
