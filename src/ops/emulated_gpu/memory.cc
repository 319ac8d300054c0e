// The memory of emulated GPUs: host memory up to a limit per GPU, and the host's pinned memory.
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "ops/emulated_gpu/counts.h"
#include "ops/emulated_gpu/emulated_gpu.h"
#include "ops/emulated_gpu/faults.h"

namespace valora::ops::emulated {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kMostGpus = 64;

struct Block {
  void* allocated = nullptr;
  size_t bytes = 0;
  c10::DeviceIndex gpu = 0;
};
std::array<std::atomic<size_t>, kMostGpus> used_bytes{};

void release(void* context) {
  auto* const block = static_cast<Block*>(context);
  used_bytes[static_cast<size_t>(block->gpu)] -= block->bytes;
  std::free(block->allocated);
  delete block;
}

// Uninitialised memory reads as NaN in every floating-point type. If the GPU does not run, it reads
// as zeros.
void* allocate_block(size_t bytes) {
  void* const data = runs() ? std::malloc(bytes + kAlignment) : std::calloc(1, bytes + kAlignment);
  if (data == nullptr) throw std::bad_alloc();
  if (runs()) std::memset(data, 0xff, bytes + kAlignment);
  return data;
}

void* aligned(void* data) {
  const auto at = reinterpret_cast<uintptr_t>(data);
  return static_cast<std::byte*>(data) + (kAlignment - at % kAlignment) % kAlignment;
}

void keep_most(std::atomic<uint64_t>& most, uint64_t value) {
  uint64_t seen = most;
  while (seen < value && !most.compare_exchange_weak(seen, value)) {
  }
}

class GpuAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::DeviceIndex gpu = current_gpu();
    const c10::Device device(c10::kCUDA, gpu);
    if (bytes == 0) return {nullptr, nullptr, &release_nothing, device};
    std::atomic<size_t>& used = used_bytes[static_cast<size_t>(gpu)];
    ++counts().allocations;
    const bool fails = fault_of(Event::kAllocation) == Fault::kNoMemory;
    if (used.fetch_add(bytes) + bytes > memory_bytes() || fails) {
      used -= bytes;
      TORCH_CHECK_WITH(OutOfMemoryError, false, "the emulated GPU is out of memory: ", bytes,
                       " bytes asked for, ", used.load(), " of ", memory_bytes(), " in use");
    }
    auto block = std::make_unique<Block>(Block{allocate_block(bytes), bytes, gpu});
    keep_most(counts().most_bytes, used);
    void* const data = aligned(block->allocated);
    return {data, block.release(), &release, device};
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
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex gpu) override {
    return {memory_bytes() - used_bytes[static_cast<size_t>(gpu)], memory_bytes()};
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

bool runs() {
  static const bool answer = [] {
    const char* const given = std::getenv("VALORA_EMULATED_GPU_RUNS");
    return given == nullptr || std::string_view(given) != "0";
  }();
  return answer;
}

c10::Allocator* gpu_allocator() {
  static GpuAllocator allocator;
  return &allocator;
}

}  // namespace valora::ops::emulated
