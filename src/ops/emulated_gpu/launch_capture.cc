// Captures on the emulated GPU: launches run, and are recorded. A replay runs them again.
#include "ops/launch_capture.h"

#include <utility>

#include "kernels/cuda/emulation/launch.h"
#include "kernels/cuda/emulation/machine.h"
#include "ops/emulated_gpu/counts.h"
#include "ops/emulated_gpu/faults.h"
#include "ops/emulated_gpu/recording.h"

namespace valora::ops {
namespace {

using kernels::cuda::emulation::Launch;

int count_and_record(const Launch& launch) {
  switch (emulated::fault_of(emulated::Event::kLaunch)) {
    case emulated::Fault::kRefused: return cudaErrorInvalidConfiguration;
    case emulated::Fault::kLost: return cudaErrorIllegalAddress;
    default: break;
  }
  ++emulated::counts().launches;
  if (emulated::recording() != nullptr)
    emulated::recording()->calls.emplace_back(
        [launch] { kernels::cuda::emulation::run_blocks(launch); });
  return cudaSuccess;
}
[[maybe_unused]] const bool observed = [] {
  kernels::cuda::emulation::before_launch() = &count_and_record;
  return true;
}();

class Recorded final : public CapturedLaunches {
 public:
  explicit Recorded(emulated::Recording recording) : recording_(std::move(recording)) {}
  void replay() override {
    emulated::check_alive();
    ++emulated::counts().replays;
    for (const auto& call : recording_.calls) call();
  }

 private:
  emulated::Recording recording_;
};

class EmulatedCapture final : public LaunchCapture {
 public:
  std::unique_ptr<CapturedLaunches> capture(const std::function<void()>& launch) override {
    launch();
    emulated::Recording made;
    struct Scope {
      explicit Scope(emulated::Recording* into) { emulated::recording() = into; }
      ~Scope() { emulated::recording() = nullptr; }
    };
    {
      const Scope scope(&made);
      launch();
    }
    ++emulated::counts().captures;
    return std::make_unique<Recorded>(std::move(made));
  }
};

}  // namespace

std::unique_ptr<LaunchCapture> LaunchCapture::make(at::Device device) {
  if (!device.is_cuda()) return nullptr;
  return std::make_unique<EmulatedCapture>();
}

}  // namespace valora::ops
