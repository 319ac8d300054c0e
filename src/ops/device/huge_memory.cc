#include "ops/device/huge_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <mutex>

namespace valora::ops {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLeast = size_t{64} << 10;  // below, malloc packs more densely
constexpr size_t kRegion = size_t{64} << 20;

size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

// Reserved memory, which begins at a huge page. A page takes physical memory when it is first
// written.
class Region {
 public:
  explicit Region(size_t bytes) : size_(bytes), mapped_(bytes + kHugePage) {
    map_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TORCH_CHECK(map_ != MAP_FAILED, "cannot allocate ", bytes, " bytes");
    begin_ = reinterpret_cast<char*>(round_up(reinterpret_cast<uintptr_t>(map_), kHugePage));
#ifdef MADV_HUGEPAGE
    madvise(begin_, size_, MADV_HUGEPAGE);  // only a hint; failure is harmless
#endif
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { munmap(map_, mapped_); }

  // nullptr if the rest is too small.
  char* take(size_t bytes) {
    if (bytes > size_ - used_) return nullptr;
    return begin_ + std::exchange(used_, used_ + bytes);
  }

 private:
  size_t size_, mapped_, used_ = 0;
  void* map_ = nullptr;
  char* begin_ = nullptr;
};

struct Place {
  std::shared_ptr<Region> region;
  char* data;
};

// Small places follow one another, so that huge pages span them; large ones have a region each.
Place take_place(size_t bytes) {
  static std::mutex mutex;
  static std::shared_ptr<Region> current;
  if (bytes > kRegion / 4) {
    auto own = std::make_shared<Region>(bytes);
    return {own, own->take(bytes)};
  }
  const std::lock_guard lock(mutex);
  if (current)
    if (char* data = current->take(bytes)) return {current, data};
  current = std::make_shared<Region>(kRegion);
  return {current, current->take(bytes)};
}

}  // namespace

at::Tensor huge_zeros(int64_t elements, at::ScalarType dtype) {
  const auto options = at::TensorOptions().dtype(dtype);
  const size_t bytes = static_cast<size_t>(elements) * c10::elementSize(dtype);
  if (bytes < kLeast) return at::zeros({elements}, options);
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t whole = round_up(bytes, page);
  const auto [region, data] = take_place(whole);
  return at::from_blob(
      data, {elements}, [region, whole](void* freed) { madvise(freed, whole, MADV_DONTNEED); },
      options);
}

}  // namespace valora::ops
