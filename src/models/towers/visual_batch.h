// Several images and videos as one flat batch for a vision tower. The rows of an item are
// contiguous.
#pragma once

#include <ATen/ATen.h>

#include <span>
#include <vector>

#include "models/batch.h"
#include "models/decoder/rotary.h"

namespace valora::models {

// Throws c10::Error if an item's patches have another size.
void check_patches(std::span<const VisualItem> items, int64_t patch_dim);
// Throws c10::Error unless the tiles of an item are squares of `side` patches.
void check_tiles(const media::VisualInput& input, int64_t side);
// Patches [begin, end) of all items, [end - begin, patch_dim].
at::Tensor patch_rows(std::span<const VisualItem> items, int64_t begin, int64_t end,
                      at::ScalarType dtype, at::Device device);
// The adapters of all items as segments; item i has rows[i] rows.
Adaptation item_adaptation(std::span<const VisualItem> items, std::span<const int64_t> rows);
// Splits x, [sum of rows, width], into one tensor per item.
std::vector<at::Tensor> split_items(const at::Tensor& x, std::span<const int64_t> rows);

// Row counts of the Qwen towers: patches, grouped by merge block (media/processors/processor.h);
// merge² patches become one token. Throws c10::Error if a grid is not a multiple of `merge`.
struct QwenVisionRows {
  std::vector<int64_t> patches, tokens;  // per item
  Adaptation patch_adaptation, token_adaptation;
};
QwenVisionRows qwen_vision_rows(std::span<const VisualItem> items, int64_t merge);
// The end row of each temporal patch, within which attention stays.
std::vector<int64_t> frame_ends(std::span<const VisualItem> items);
// The rotary angles of each patch's row and column, concatenated; rows are ordered by merge block.
// float [rows, row frequencies + column frequencies]
at::Tensor grid_angles(std::span<const VisualItem> items, int64_t merge,
                       const at::Tensor& row_frequency, const at::Tensor& column_frequency);
// 2-D rotary angles: the first half of the frequencies takes the patch's row, the second half its
// column. float [rows, head_dim / 2].
CosSin patch_rotary(std::span<const VisualItem> items, int64_t merge, int64_t head_dim,
                    at::Device device);

}  // namespace valora::models
