// The spans of a step as read by GPU attention kernels: built and copied once per step.
#pragma once

#include <memory>

namespace valora::ops {

struct DeviceSpanTables;  // ops/attention/attention_cuda.cc

// Empty until the first paged_attention() that uses it, and always on CPUs. Valid for one set of
// spans.
struct SpanTables {
  std::shared_ptr<DeviceSpanTables> on_device;
};

}  // namespace valora::ops
