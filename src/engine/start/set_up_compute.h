// Applies the options about computation to the process.
#pragma once

#include <ATen/ATen.h>

#include "api/options.h"
#include "base/result.h"

namespace valora {

// Sets the instruction set, the tiles, the kernels and the threads of torch's pool.
Status set_up_compute(const EngineOptions& options, at::Device device);

}  // namespace valora
