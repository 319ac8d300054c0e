// Pictures in one of several resolutions, as LLaVA-NeXT and LLaVA-OneVision see them: which
// resolution a picture gets, and which patches of its tiles become tokens. In the arithmetic of the
// reference (transformers: image_processing_utils.py, unpad_image), in Python's doubles.
#pragma once

#include <vector>

#include "base/json.h"
#include "media/processor.h"
#include "media/smart_resize.h"

namespace valora::media {

inline constexpr int kMaxAnyresTiles = 1024;

// A list of pairs of height and width. Errors: the clause behind the name of the setting.
Result<std::vector<PixelSize>> parse_pinpoints(const Json& value);

// Whether all are made of whole tiles, and not of more than kMaxAnyresTiles.
bool fits(const std::vector<PixelSize>& pinpoints, int tile);

// Tiles of `tile` pixels a side.
struct AnyresTiles {
  int tile = 336;
  int side = 24;  // patches a side
  // Above so many tiles' patches, by more than a fifth, rows and columns are resized to fewer; 0:
  // never.
  int most = 0;
};

// The resolution that keeps the most pixels of a picture, of these the one with the least padding.
PixelSize best_resolution(PixelSize picture, const std::vector<PixelSize>& pinpoints);
// The size that the picture is resized to within a resolution, before it is padded.
PixelSize size_within(PixelSize picture, PixelSize resolution);
// Which patches of the tiles of a resolution become tokens. kInvalidArgument: none would.
Result<UnpaddedTiles> unpadded_tiles(PixelSize picture, PixelSize resolution,
                                     const AnyresTiles& tiles);

}  // namespace valora::media
