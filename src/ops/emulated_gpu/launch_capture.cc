// Captures on the emulated GPU: launches run immediately and are recorded; a replay runs them
// again.
#include "ops/launch/launch_capture.h"

#include <c10/util/Exception.h>

#include <string>
#include <unordered_map>
#include <utility>

#include "kernels/cuda/emulation/kernel_name.h"
#include "kernels/cuda/emulation/launch.h"
#include "kernels/cuda/emulation/machine.h"
#include "ops/emulated_gpu/counts.h"
#include "ops/emulated_gpu/emulated_gpu.h"
#include "ops/emulated_gpu/faults.h"
#include "ops/emulated_gpu/recording.h"

namespace valora::ops {
namespace {

using kernels::cuda::emulation::Launch;

// The host checks what these make of logits, so they run in any case.
bool chooses_tokens(const Launch& launch) {
  thread_local std::unordered_map<const void*, bool> known;
  const auto [entry, added] = known.try_emplace(launch.kernel, false);
  if (added) {
    const std::string name = kernels::cuda::emulation::kernel_name(launch.kernel);
    entry->second = name == "parts_kernel" || name == "rows_kernel";
  }
  return entry->second;
}

int count_and_record(const Launch& launch) {
  switch (emulated::fault_of(emulated::Event::kLaunch)) {
    case emulated::Fault::kRefused: return cudaErrorInvalidConfiguration;
    case emulated::Fault::kLost: return cudaErrorIllegalAddress;
    default: break;
  }
  ++emulated::counts().launches;
  if (!emulated::runs()) {
    if (chooses_tokens(launch)) {
      const emulated::Working working;
      kernels::cuda::emulation::run_blocks(launch);
    }
    return -1;
  }
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
    TORCH_CHECK_WITH(OutOfMemoryError,
                     emulated::fault_of(emulated::Event::kCapture) != emulated::Fault::kNoMemory,
                     "the emulated GPU is out of memory for a graph");
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
