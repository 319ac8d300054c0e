// Launches from a graph, as a captured step does them.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace valora::kernels::cuda {

// Captures launch(stream), which returns a Status, and replays it `times` times unless that failed.
// before_each: with nothing on the device. → the status
int replay_captured(const std::function<int(cudaStream_t)>& launch, int times,
                    const std::function<void()>& before_each);

}  // namespace valora::kernels::cuda
