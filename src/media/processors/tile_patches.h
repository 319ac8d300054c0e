// Cuts square tiles into patches, as the processors of Idefics3 and InternVL do.
#pragma once

#include "media/image/image.h"
#include "media/processors/processor.h"
#include "media/processors/processor_settings.h"

namespace valora::media {

struct TileCorner {
  int left = 0, top = 0;  // in pixels
};

// Writes the patches of one tile, `side` per side, in merge-block order, and returns the end. Does
// not read pixels beyond whole patches.
float* append_tile(const Image& image, TileCorner corner, int side, const TileTarget& target,
                   const PixelTable& table, float* out);

// The same for a rectangular grid of patches, in whole merge blocks.
float* append_patches(const Image& image, TileCorner corner, PixelSize patches,
                      const TileTarget& target, const PixelTable& table, float* out);

// A VisualInput with space for the patches of `tiles` tiles.
VisualInput make_tiles(MediaKind kind, int tiles, int side, const TileTarget& target);

}  // namespace valora::media
