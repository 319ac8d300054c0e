// Emulated GPUs as libtorch devices. Each has one stream, which runs all work as soon as it is
// launched.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <cstdlib>

#include "kernels/cuda/emulation/machine.h"
#include "ops/emulated_gpu/emulated_gpu.h"
#include "ops/emulated_gpu/faults.h"

namespace valora::ops::emulated {
namespace {

c10::Device gpu(c10::DeviceIndex index) { return {c10::kCUDA, index}; }

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return gpu(current_gpu()); }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() >= 0 && device.index() < gpu_count(),
                "CUDA error: invalid device ordinal");
    current_gpu() = device.index();
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    current_gpu() = device.index();
  }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device.has_index() ? device : getDevice());
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getStream(device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return getStream(stream.device());
  }
  void* getStreamNativeHandle(const c10::Stream) const override { return nullptr; }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(gpu_count());
  }
  void record(void**, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { check_alive(); }
  void synchronizeEvent(void*) const override { check_alive(); }
  void synchronizeDevice(const c10::DeviceIndex) const override { check_alive(); }
};

struct Hooks final : at::CUDAHooksInterface {
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  int getNumGPUs() const override { return gpu_count(); }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(gpu_count());
  }
  c10::DeviceIndex current_device() const override { return current_gpu(); }
  c10::DeviceIndex getCurrentDevice() const override { return current_gpu(); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  void deviceSynchronize(c10::DeviceIndex) const override {}
};

bool plug_in() {
  c10::SetAllocator(c10::kCUDA, gpu_allocator());
  const char* const capability = std::getenv("VALORA_EMULATED_GPU");
  TORCH_CHECK(
      kernels::cuda::emulation::choose_gpu(capability ? std::atoi(capability) : 90),
      "VALORA_EMULATED_GPU is not the capability of a GPU that can be emulated: ", capability);
  // libtorch's products stand in for cuBLAS's. With AMX, oneDNN 3 reads past the ends of rows that
  // are apart in memory, and a NaN there spoils the sums.
  setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16", 0);
  return true;
}
[[maybe_unused]] const bool plugged_in = plug_in();

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

}  // namespace

int gpu_count() {
  static const int count = [] {
    const char* const given = std::getenv("VALORA_EMULATED_GPUS");
    return given != nullptr ? std::clamp(std::atoi(given), 1, 64) : 1;
  }();
  return count;
}

c10::DeviceIndex& current_gpu() {
  thread_local c10::DeviceIndex current = 0;
  return current;
}

}  // namespace valora::ops::emulated

namespace at {
C10_REGISTER_TYPED_CLASS(CUDAHooksRegistry, "CUDAHooks", valora::ops::emulated::Hooks)
}
