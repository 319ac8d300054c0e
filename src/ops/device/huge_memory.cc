#include "ops/device/huge_memory.h"

#include <sys/mman.h>

#include <cstdint>

namespace valora::ops {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

at::Tensor huge_zeros(int64_t elements, at::ScalarType dtype) {
  const auto options = at::TensorOptions().dtype(dtype);
  const size_t bytes = static_cast<size_t>(elements) * c10::elementSize(dtype);
  if (bytes < kHugePage) return at::zeros({elements}, options);
  const size_t mapped = bytes + kHugePage;
  void* map = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TORCH_CHECK(map != MAP_FAILED, "cannot allocate ", bytes, " bytes");
  const uintptr_t begin =
      (reinterpret_cast<uintptr_t>(map) + kHugePage - 1) / kHugePage * kHugePage;
#ifdef MADV_HUGEPAGE
  madvise(reinterpret_cast<void*>(begin), bytes,
          MADV_HUGEPAGE);  // only a hint; failure is harmless
#endif
  return at::from_blob(
      reinterpret_cast<void*>(begin), {elements}, [map, mapped](void*) { munmap(map, mapped); },
      options);
}

}  // namespace valora::ops
