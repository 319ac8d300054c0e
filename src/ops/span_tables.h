// What the attention kernels of a GPU read of a step's spans: made and copied once per step.
#pragma once

#include <memory>

namespace valora::ops {

struct DeviceSpanTables;  // ops/attention_cuda.cc

// Empty until the first paged_attention() with it, and on CPUs. Belongs to one set of spans.
struct SpanTables {
  std::shared_ptr<DeviceSpanTables> on_device;
};

}  // namespace valora::ops
