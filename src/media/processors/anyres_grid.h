// Pictures at one of several resolutions, for LLaVA-NeXT and LLaVA-OneVision: which resolution a
// picture gets, and which patches of its tiles become tokens. Uses the reference's arithmetic
// (transformers: image_processing_utils.py, unpad_image) in Python's doubles.
#pragma once

#include <vector>

#include "base/json/json.h"
#include "media/processors/processor.h"
#include "media/processors/smart_resize.h"

namespace valora::media {

inline constexpr int kMaxAnyresTiles = 1024;

// Reads a list of [height, width] pairs. Errors are a clause to follow the setting's name.
Result<std::vector<PixelSize>> parse_pinpoints(const Json& value);

// True if every resolution consists of whole tiles, at most kMaxAnyresTiles of them.
bool fits(const std::vector<PixelSize>& pinpoints, int tile);

// Tiles with sides of `tile` pixels.
struct AnyresTiles {
  int tile = 336;
  int side = 24;  // patches per side
  // If the patches exceed those of this many tiles by more than about a fifth, their rows and
  // columns are resized to fewer; 0: never.
  int most = 0;
};

// The resolution that preserves the most pixels of the picture; among equals, the one with the
// least padding.
PixelSize best_resolution(PixelSize picture, const std::vector<PixelSize>& pinpoints);
// The size to which the picture is resized within a resolution, before padding.
PixelSize size_within(PixelSize picture, PixelSize resolution);
// Which patches of a resolution's tiles become tokens. kInvalidArgument if none would.
Result<UnpaddedTiles> unpadded_tiles(PixelSize picture, PixelSize resolution,
                                     const AnyresTiles& tiles);

}  // namespace valora::media
