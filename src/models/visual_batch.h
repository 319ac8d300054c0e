// Several images and videos as one flat batch of rows for a vision tower, those of an item side by
// side.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "models/batch.h"
#include "models/rotary.h"

namespace valora::models {

// The items' patches, [rows of all items, patch_dim]; throws where an item's patches are of another
// size.
at::Tensor patch_rows(std::span<const VisualItem> items, int64_t patch_dim, at::ScalarType dtype,
                      at::Device device);
// Item i has rows[i] rows: what the items run under, by their adapters.
Adaptation item_adaptation(std::span<const VisualItem> items, std::span<const int64_t> rows);
// x: [sum of rows, width] → one tensor an item.
std::vector<at::Tensor> split_items(const at::Tensor& x, std::span<const int64_t> rows);

// The Qwen towers' rows: patches, merge block by merge block (media/processor.h), then merge² of
// them a token.
struct QwenVisionRows {
  std::vector<int64_t> patches, tokens;  // of each item
  Adaptation patch_adaptation, token_adaptation;
};
QwenVisionRows qwen_vision_rows(std::span<const VisualItem> items, int64_t merge);
// Where each temporal step ends: it attends within itself.
std::vector<int64_t> frame_ends(std::span<const VisualItem> items);
// Half of a head's frequencies turn with a patch's row, half with its column: float [rows, head_dim
// / 2].
CosSin patch_rotary(std::span<const VisualItem> items, int64_t merge, int64_t head_dim,
                    at::Device device);

}  // namespace valora::models
