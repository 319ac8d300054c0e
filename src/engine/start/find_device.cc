#include "engine/start/find_device.h"

#include <string>

#include "kernels/cpu/isa/isa.h"
#include "kernels/tiles/find_tiles.h"
#include "ops/device/backend.h"
#include "ops/device/compute_threads.h"
#include "ops/device/gpu.h"

namespace valora {

Result<at::Device> find_device(DeviceKind kind) {
  if (kind == DeviceKind::kCpu) return at::Device(at::kCPU);
  if (!at::globalContext().hasCUDA())
    return unprocessable(
        "--device cuda: this build's torch has no CUDA, or it finds no GPU; build with PYTHON= set "
        "to an interpreter with a CUDA torch",
        "device");
  const ops::Gpu gpu = ops::this_gpu();
  if (gpu.capability > 0 && gpu.capability < ops::kLeastCapability)
    return unprocessable("--device cuda: " + gpu.name + " has compute capability " +
                             std::to_string(gpu.capability / 10) + "." +
                             std::to_string(gpu.capability % 10) +
                             "; GPUs from 8.0 on are supported",
                         "device");
  return at::Device(at::kCUDA, 0);
}

kernels::Hardware hardware_of(at::Device device) {
  if (device.is_cpu()) return kernels::this_hardware();
  const ops::Gpu gpu = ops::this_gpu();
  return kernels::gpu_hardware(gpu.name, gpu.capability, gpu.shared_bytes, gpu.cache_bytes);
}

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
