// Adapters' panels in each form. The caller has checked the arguments.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>

#include "ops/weights/panel_layout.h"

namespace valora::ops {

// Bytes of a panel with k inputs.
size_t panel_bytes_cpu(int64_t k, at::ScalarType dtype);
// Number of panels for n outputs.
int64_t panels_cpu(int64_t n);

// tensor: F32, F16 or BF16 rows of the factor starting at `first`, the first row of a panel: [rows,
// f.k].
void write_panels_cpu(const PanelLayout& layout, const PanelLayout::Factor& f,
                      const TensorView& tensor, int64_t first, std::span<std::byte* const> blocks);
void write_panels_plain(const PanelLayout& layout, const PanelLayout::Factor& f,
                        const TensorView& tensor, int64_t first,
                        std::span<std::byte* const> blocks);

}  // namespace valora::ops
