#include "engine/memory/free_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include "engine/memory/memory_plan.h"

namespace valora {

int64_t available_memory(at::Device device) {
  if (device.is_cpu()) return available_host_memory();
  at::DeviceAllocator& allocator = *at::getDeviceAllocator(device.type());
  allocator.emptyCache();  // memory that loading used temporarily is free, too
  return static_cast<int64_t>(allocator.getMemoryInfo(device.index()).first);
}

}  // namespace valora
