// Memory for data that is streamed once per step, on huge pages where the system has them: with 4
// KiB pages the cores read it more slowly, since most loads of a new page miss the TLB.
#pragma once

#include <ATen/ATen.h>

namespace valora::ops {

// A zero-filled one-dimensional CPU tensor. Tensors too small for huge pages of their own share
// them; the memory of each returns to the system when it is released. Throws c10::Error if memory
// is exhausted.
at::Tensor huge_zeros(int64_t elements, at::ScalarType dtype);

}  // namespace valora::ops
