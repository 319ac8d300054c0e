// The device that runs the model, and the process's settings for it.
#pragma once

#include <ATen/ATen.h>

#include "api/options.h"
#include "base/result.h"
#include "kernels/tiles/hardware.h"

namespace valora {

// kUnprocessable if there is no device of this kind that the kernels support.
Result<at::Device> find_device(DeviceKind kind);
// The key for looking up tables of tiles.
kernels::Hardware hardware_of(at::Device device);

// Applies the options about computation to the process: sets the instruction set, the tiles, the
// kernels and the threads of torch's pool.
Status set_up_compute(const EngineOptions& options, at::Device device);

}  // namespace valora
