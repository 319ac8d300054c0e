// The patches of square tiles, as the processors of Idefics3 and InternVL cut them.
#pragma once

#include "media/image.h"
#include "media/processor.h"
#include "media/processor_settings.h"

namespace valora::media {

struct TileCorner {
  int left = 0, top = 0;  // in pixels
};

// Writes the patches of the tile at a corner, of `side` patches per side, by merge block, and
// returns the end. Pixels beyond whole patches are not read.
float* append_tile(const Image& image, TileCorner corner, int side, const TileTarget& target,
                   const PixelTable& table, float* out);

// The same of a grid of patches that is no square, of whole merge blocks.
float* append_patches(const Image& image, TileCorner corner, PixelSize patches,
                      const TileTarget& target, const PixelTable& table, float* out);

// A VisualInput with room for the patches of so many tiles.
VisualInput make_tiles(MediaKind kind, int tiles, int side, const TileTarget& target);

}  // namespace valora::media
