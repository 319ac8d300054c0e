// Replays launches from a graph, as captured steps do.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace valora::kernels::cuda {

// Captures launch(stream), which returns a Status, and replays it `times` times unless the capture
// failed. before_each: called when the device is idle. → the status
int replay_captured(const std::function<int(cudaStream_t)>& launch, int times,
                    const std::function<void()>& before_each);

}  // namespace valora::kernels::cuda
