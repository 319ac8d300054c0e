#include "models/towers/visual_batch.h"

#include <algorithm>

namespace valora::models {
namespace {

// The angles of one grid, [t * h * w, head_dim / 2].
at::Tensor angles_of(const media::VisualInput& input, int64_t m, const at::Tensor& row_frequency,
                     const at::Tensor& column_frequency) {
  const int64_t h = input.grid_h, w = input.grid_w;
  const auto blockwise = [&](const at::Tensor& index) {  // [h, w] → [h * w, 1] in patch order
    return index.reshape({h / m, m, w / m, m}).permute({0, 2, 1, 3}).reshape({h * w, 1});
  };
  const at::Tensor row = blockwise(at::arange(h, at::kFloat).unsqueeze(1).expand({h, w}));
  const at::Tensor column = blockwise(at::arange(w, at::kFloat).unsqueeze(0).expand({h, w}));
  return at::cat({row * row_frequency, column * column_frequency}, 1).repeat({input.grid_t, 1});
}

}  // namespace

void check_patches(std::span<const VisualItem> items, int64_t patch_dim) {
  for (const VisualItem& item : items)
    TORCH_CHECK(item.input->patch_dim == patch_dim, "the image processor makes patches of ",
                item.input->patch_dim, " values, but the vision tower takes ", patch_dim);
}

void check_tiles(const media::VisualInput& input, int64_t side) {
  TORCH_CHECK(input.grid_h == side && input.grid_w == side, "a tile of ", input.grid_h, " x ",
              input.grid_w, " patches, but the vision tower takes squares of ", side);
}

at::Tensor patch_rows(std::span<const VisualItem> items, int64_t begin, int64_t end,
                      at::ScalarType dtype, at::Device device) {
  std::vector<at::Tensor> rows;
  int64_t first = 0;  // row of the item's first patch
  for (const VisualItem& item : items) {
    const media::VisualInput& in = *item.input;
    const int64_t from = std::max(begin, first), to = std::min(end, first + in.patch_count());
    if (from < to)
      rows.push_back(
          at::from_blob(const_cast<float*>(in.patches.data()) + (from - first) * in.patch_dim,
                        {to - from, in.patch_dim}, at::kFloat));
    first += in.patch_count();
  }
  const at::Tensor all = rows.size() == 1 ? rows[0] : at::cat(rows);
  return all.to(at::TensorOptions().dtype(dtype).device(device));
}

Adaptation item_adaptation(std::span<const VisualItem> items, std::span<const int64_t> rows) {
  Adaptation adaptation;
  int64_t begin = 0;
  for (size_t i = 0; i < items.size(); begin += rows[i], ++i)
    for (const ops::ScaledAdapter& use : items[i].adapters)
      adaptation.lora.add(begin, begin + rows[i], *use.adapter, use.coefficient),
          adaptation.lora.add_outputs(begin, begin + rows[i], *use.adapter, use.coefficient);
  return adaptation;
}

std::vector<at::Tensor> split_items(const at::Tensor& x, std::span<const int64_t> rows) {
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  for (const int64_t count : rows) {
    // With several items, each is copied, so that a cached item does not keep the others' memory
    // alive.
    const at::Tensor part = x.narrow(0, begin, count);
    parts.push_back(rows.size() == 1 ? part : part.clone());
    begin += count;
  }
  return parts;
}

QwenVisionRows qwen_vision_rows(std::span<const VisualItem> items, int64_t merge) {
  QwenVisionRows rows;
  for (const VisualItem& item : items) {
    const media::VisualInput& in = *item.input;
    TORCH_CHECK(in.grid_h % merge == 0 && in.grid_w % merge == 0, "a grid of ", in.grid_h, " x ",
                in.grid_w, " patches is not a multiple of the vision tower's merge size ", merge);
    rows.patches.push_back(in.patch_count());
    rows.tokens.push_back(rows.patches.back() / (merge * merge));
  }
  rows.patch_adaptation = item_adaptation(items, rows.patches);
  rows.token_adaptation = item_adaptation(items, rows.tokens);
  return rows;
}

std::vector<int64_t> frame_ends(std::span<const VisualItem> items) {
  std::vector<int64_t> ends;
  int64_t end = 0;
  for (const VisualItem& item : items)
    for (int t = 0; t < item.input->grid_t; ++t)
      ends.push_back(end += int64_t{item.input->grid_h} * item.input->grid_w);
  return ends;
}

at::Tensor grid_angles(std::span<const VisualItem> items, int64_t merge,
                       const at::Tensor& row_frequency, const at::Tensor& column_frequency) {
  std::vector<at::Tensor> angles;
  for (const VisualItem& item : items)
    angles.push_back(angles_of(*item.input, merge, row_frequency, column_frequency));
  return at::cat(angles);
}

CosSin patch_rotary(std::span<const VisualItem> items, int64_t merge, int64_t head_dim,
                    at::Device device) {
  const int64_t quarter = head_dim / 4;
  const at::Tensor frequency =
      1.0 / at::pow(10000.0, at::arange(0, quarter, at::kFloat) / double(quarter));
  const at::Tensor angle = grid_angles(items, merge, frequency, frequency).to(device);
  return {at::cos(angle), at::sin(angle)};
}

}  // namespace valora::models
