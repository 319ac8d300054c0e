// The spans and the states of a step as read by GPU kernels: built and copied once per step.
#pragma once

#include <memory>

namespace valora::ops {

struct DeviceSpanTables;  // ops/attention/attention_cuda.cc

// Empty until the first paged_attention() that uses it, and always on CPUs. Valid for one set of
// spans.
struct SpanTables {
  std::shared_ptr<DeviceSpanTables> on_device;
};

struct DeviceStateTables;  // ops/delta/gated_delta_cuda.h

// Empty until the first gated_delta() that uses it, and always on CPUs. Valid for the spans of one
// step.
struct StateSpanTables {
  std::shared_ptr<DeviceStateTables> on_device;
};

}  // namespace valora::ops
