// Takes what has not changed in a camera's frame from the frame before, so that noise does not make
// it another picture: a tile is equal to the bit if all its blocks stand, and the next ones that
// the resizing reads. The vision tower's embeddings of it are then found (VisualInput::parts).
#pragma once

#include "media/image/image.h"
#include "streams/stream_spec.h"

namespace valora::streams {

// The blocks of a picture; those of its right and bottom edge may be smaller.
struct BlockCounts {
  int64_t all = 0;
  int64_t still = 0;  // taken from the picture before
};

// Of one connection's frames; not thread-safe.
class StillBlocks {
 public:
  static constexpr int kBlock = 16;  // pixels per side: whole blocks of JPEG
  // A block is still if the means of all its cells are, over each colour: noise leaves a mean as it
  // is, and a small thing that moves changes that of a cell or two.
  static constexpr int kCell = 4;  // pixels per side

  explicit StillBlocks(const StillRule& rule) : rule_(rule) {}

  // Replaces the blocks that do not differ from those of the picture before, as this function left
  // it, so that small changes add up. A picture of another size, and one that comes `at_most`
  // seconds or more after the last whole one, stays as it is. time: seconds.
  BlockCounts apply(media::Image& image, double time);

 private:
  bool is_still(const media::Image& image, int left, int top) const;

  const StillRule rule_;
  media::Image before_;
  double whole_at_ = 0;
};

}  // namespace valora::streams
