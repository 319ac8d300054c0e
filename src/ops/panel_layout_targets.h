// The sizes of panels on CPUs.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>

namespace valora::ops {

// Bytes of a panel with k inputs.
size_t panel_bytes_cpu(int64_t k, at::ScalarType dtype);
// Panels of n outputs.
int64_t panels_cpu(int64_t n);

}  // namespace valora::ops
