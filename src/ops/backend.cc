#include "ops/backend.h"

#include <atomic>

namespace valora::ops {
namespace {

std::atomic<Backend> current{Backend::kNative};

}  // namespace

Backend backend() { return current.load(std::memory_order_relaxed); }

void set_backend(Backend backend) { current.store(backend, std::memory_order_relaxed); }

Result<Backend> parse_backend(const std::string& name) {
  if (name == "native") return Backend::kNative;
  if (name == "reference") return Backend::kReference;
  return invalid("--kernels \"" + name + "\" is unknown; use native or reference", "kernels");
}

}  // namespace valora::ops
