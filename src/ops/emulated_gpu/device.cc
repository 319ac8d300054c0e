// The emulated GPU as libtorch's device: one stream, on which all work is done when it is launched.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstdlib>

#include "kernels/cuda/emulation/machine.h"
#include "ops/emulated_gpu/emulated_gpu.h"
#include "ops/emulated_gpu/faults.h"

namespace valora::ops::emulated {
namespace {

const c10::Device kGpu(c10::kCUDA, 0);

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device) const override { return kGpu; }
  c10::Device getDevice() const override { return kGpu; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override {
    return c10::Stream(c10::Stream::DEFAULT, kGpu);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getStream(device);
  }
  c10::Stream exchangeStream(c10::Stream) const override { return getStream(kGpu); }
  void* getStreamNativeHandle(const c10::Stream) const override { return nullptr; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
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
  int getNumGPUs() const override { return 1; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex current_device() const override { return 0; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  void deviceSynchronize(c10::DeviceIndex) const override {}
};

bool plug_in() {
  c10::SetAllocator(c10::kCUDA, gpu_allocator());
  const char* const capability = std::getenv("VALORA_EMULATED_GPU");
  TORCH_CHECK(
      kernels::cuda::emulation::choose_gpu(capability ? std::atoi(capability) : 90),
      "VALORA_EMULATED_GPU is not the capability of a GPU that can be emulated: ", capability);
  return true;
}
[[maybe_unused]] const bool plugged_in = plug_in();

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

}  // namespace
}  // namespace valora::ops::emulated

namespace at {
C10_REGISTER_TYPED_CLASS(CUDAHooksRegistry, "CUDAHooks", valora::ops::emulated::Hooks)
}
