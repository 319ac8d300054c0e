#include "ops/device/backend.h"

#include <atomic>

namespace valora::ops {
namespace {

std::atomic<Backend> current{Backend::kNative};

}  // namespace

Backend backend() { return current.load(std::memory_order_relaxed); }

void set_backend(Backend backend) { current.store(backend, std::memory_order_relaxed); }

}  // namespace valora::ops
