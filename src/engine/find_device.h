// The device that a model is computed on.
#pragma once

#include <ATen/ATen.h>

#include "api/options.h"
#include "base/result.h"
#include "kernels/tiles/hardware.h"

namespace valora {

// kUnprocessable if there is none of this kind that the kernels run on.
Result<at::Device> find_device(DeviceKind kind);
// By which tables of tiles are found.
kernels::Hardware hardware_of(at::Device device);

}  // namespace valora
