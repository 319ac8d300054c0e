// Memory available to the pool on the ranks' devices.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace valora {

// Memory free on the device now, including what its allocator holds unused.
int64_t available_memory(at::Device device);

// Free memory of each device, less planned uses. On CPUs all ranks share one entry; on GPUs each
// rank has its own.
class FreeMemory {
 public:
  void add(int64_t bytes) { bytes_.push_back(bytes); }
  void take(size_t device, int64_t bytes) { bytes_[device] -= bytes; }
  int64_t of(size_t device) const { return bytes_[device]; }
  size_t devices() const { return bytes_.size(); }
  // All ranks have the same number of blocks, so this is the least free memory times the number of
  // devices.
  int64_t for_pool() const {
    return *std::ranges::min_element(bytes_) * static_cast<int64_t>(bytes_.size());
  }

 private:
  std::vector<int64_t> bytes_;
};

}  // namespace valora
