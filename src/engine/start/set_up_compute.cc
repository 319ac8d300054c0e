#include "engine/start/set_up_compute.h"

#include "engine/start/find_device.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/tiles/find_tiles.h"
#include "ops/device/backend.h"
#include "ops/device/compute_threads.h"
#include "ops/device/gpu.h"

namespace valora {

Status set_up_compute(const EngineOptions& options, at::Device device) {
  VALORA_CHECK(kernels::select_isa());
  VALORA_CHECK(kernels::load_tiles(options.tiles, hardware_of(device)));
  if (!device.is_cpu()) ops::prepare_gpu();
  ops::set_backend(options.kernels == KernelBackend::kNative ? ops::Backend::kNative
                                                             : ops::Backend::kReference);
  ops::set_compute_threads(options.threads);
  return {};
}

}  // namespace valora
