#include "media/processors/tile_patches.h"

namespace valora::media {
namespace {

float* append_patch(const Image& image, TileCorner corner, int patch, const PixelTable& table,
                    float* out) {
  for (int c = 0; c < kChannels; ++c)
    for (int y = corner.top; y < corner.top + patch; ++y) {
      const uint8_t* pixel = &image.rgb[(size_t(y) * image.width + corner.left) * kChannels + c];
      for (int x = 0; x < patch; ++x, pixel += kChannels) *out++ = table[c][*pixel];
    }
  return out;
}

}  // namespace

float* append_patches(const Image& image, TileCorner corner, PixelSize patches,
                      const TileTarget& target, const PixelTable& table, float* out) {
  const int merge = target.merge_size, patch = target.patch_size;
  for (int block_y = 0; block_y < patches.height; block_y += merge)
    for (int block_x = 0; block_x < patches.width; block_x += merge)
      for (int y = block_y; y < block_y + merge; ++y)
        for (int x = block_x; x < block_x + merge; ++x)
          out = append_patch(image, {corner.left + x * patch, corner.top + y * patch}, patch, table,
                             out);
  return out;
}

float* append_tile(const Image& image, TileCorner corner, int side, const TileTarget& target,
                   const PixelTable& table, float* out) {
  return append_patches(image, corner, {side, side}, target, table, out);
}

VisualInput make_tiles(MediaKind kind, int tiles, int side, const TileTarget& target) {
  VisualInput input;
  input.kind = kind;
  input.grid_t = tiles;
  input.grid_h = input.grid_w = side;
  input.patch_dim = kChannels * target.patch_size * target.patch_size;
  const int tokens = side / target.merge_size;
  input.tokens = tiles * tokens * tokens;
  input.patches.resize(size_t(input.patch_count()) * input.patch_dim);
  return input;
}

}  // namespace valora::media
