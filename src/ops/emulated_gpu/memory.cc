// The emulated GPU's memory: the host's, up to a limit, and a pinned one of the host.
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "ops/emulated_gpu/emulated_gpu.h"
#include "ops/emulated_gpu/faults.h"

namespace valora::ops::emulated {
namespace {

constexpr size_t kAlignment = 256;
const c10::Device kGpu(c10::kCUDA, 0);

struct Block {
  void* data = nullptr;
  size_t bytes = 0;
};
std::atomic<size_t> used_bytes = 0;

void release(void* context) {
  auto* const block = static_cast<Block*>(context);
  used_bytes -= block->bytes;
  std::free(block->data);
  delete block;
}

// Memory that nobody wrote to is NaN in every floating-point type.
void* allocate_block(size_t bytes) {
  void* const data =
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (data == nullptr) throw std::bad_alloc();
  std::memset(data, 0xff, bytes);
  return data;
}

class GpuAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release_nothing, kGpu};
    const bool fails = fault_of(Event::kAllocation) == Fault::kNoMemory;
    if (used_bytes.fetch_add(bytes) + bytes > memory_bytes() || fails) {
      used_bytes -= bytes;
      TORCH_CHECK_WITH(OutOfMemoryError, false, "the emulated GPU is out of memory: ", bytes,
                       " bytes asked for, ", used_bytes.load(), " of ", memory_bytes(), " in use");
    }
    auto block = std::make_unique<Block>(Block{allocate_block(bytes), bytes});
    void* const data = block->data;
    return {data, block.release(), &release, kGpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
    return {memory_bytes() - used_bytes, memory_bytes()};
  }

 private:
  static void release_nothing(void*) {}
};

}  // namespace

size_t memory_bytes() {
  static const size_t bytes = [] {
    const char* const given = std::getenv("VALORA_EMULATED_GPU_MEMORY");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : size_t{4} << 30;
  }();
  return bytes;
}

c10::Allocator* gpu_allocator() {
  static GpuAllocator allocator;
  return &allocator;
}

}  // namespace valora::ops::emulated
