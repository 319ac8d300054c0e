#include "models/families/llava_rows.h"

namespace valora::models {
namespace {

// Resizes [n, rows, columns, hidden] to the given rows and columns, as interpolate() with mode
// "bilinear" does.
at::Tensor resized_grid(const at::Tensor& grid, int64_t rows, int64_t columns) {
  if (grid.size(1) == rows && grid.size(2) == columns) return grid;
  return at::upsample_bilinear2d(grid.permute({0, 3, 1, 2}), {rows, columns},
                                 /*align_corners=*/false)
      .permute({0, 2, 3, 1});
}

at::Tensor tile_rows(const at::Tensor& tiles, const media::VisualInput& input, int64_t side,
                     const at::Tensor& newline) {
  const int64_t rows = input.tile_rows * side, columns = input.tile_columns * side,
                hidden = tiles.size(-1);
  const media::UnpaddedTiles& kept = input.unpadded;
  const at::Tensor grid = tiles.view({input.tile_rows, input.tile_columns, side, side, hidden})
                              .permute({0, 2, 1, 3, 4})
                              .reshape({1, rows, columns, hidden})
                              .slice(1, kept.cut_rows, rows - kept.cut_rows)
                              .slice(2, kept.cut_columns, columns - kept.cut_columns);
  const at::Tensor ends = newline.expand({1, kept.rows, 1, hidden});
  return at::cat({resized_grid(grid, kept.rows, kept.columns), ends}, 2).reshape({-1, hidden});
}

}  // namespace

at::Tensor with_newlines(const at::Tensor& x, const media::VisualInput& input, int64_t side,
                         const at::Tensor& newline) {
  const int64_t each = side * side, hidden = x.size(-1), pooled = (side + 1) / 2;
  const at::Tensor end = newline.view({1, hidden});
  std::vector<at::Tensor> parts;
  if (input.kind == media::MediaKind::kVideo) {
    const at::Tensor frames = x.view({input.grid_t, side, side, hidden});
    parts = {resized_grid(frames, pooled, pooled).reshape({-1, hidden}), end};
  } else if (input.grid_t == 1) {
    parts = {x, end};
  } else {
    TORCH_CHECK(input.grid_t == 1 + int64_t{input.tile_rows} * input.tile_columns,
                "a picture needs 1 + ", input.tile_rows, " x ", input.tile_columns,
                " tiles, but has ", input.grid_t);
    parts = {x.slice(0, 0, each), tile_rows(x.slice(0, each), input, side, newline)};
  }
  const at::Tensor rows = at::cat(parts);
  TORCH_CHECK(rows.size(0) == input.tokens, "a picture yields ", rows.size(0), " rows for ",
              input.tokens, " tokens");
  return rows;
}

}  // namespace valora::models
