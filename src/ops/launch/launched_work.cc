#include "ops/launch/launched_work.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <optional>
#include <utility>

namespace valora::ops {
namespace {

class NothingLaunched final : public LaunchedWork {
 public:
  void end_part() override {}
  void wait() override {}
};

class StreamWork final : public LaunchedWork {
 public:
  explicit StreamWork(at::Device device) : device_(device) {}

  void end_part() override {
    c10::Event ended(device_.type());
    ended.record(stream());
    const std::optional<c10::Event> before = std::exchange(last_, std::move(ended));
    if (before) before->synchronize();
  }

  void wait() override {
    last_.reset();
    stream().synchronize();
  }

 private:
  c10::Stream stream() const {
    return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
  }

  at::Device device_;
  std::optional<c10::Event> last_;  // end of the last part
};

}  // namespace

std::unique_ptr<LaunchedWork> launched_work(at::Device device) {
  if (device.is_cpu()) return std::make_unique<NothingLaunched>();
  return std::make_unique<StreamWork>(device);
}

}  // namespace valora::ops
