// libheif's decoder of HEVC pictures: libav's, which also reads videos, under the limits of one
// file. libheif's own has none.
#pragma once

#include <cstdint>
#include <optional>

namespace valora::media {

// What the pictures of a file may take; a grid has one per tile. Applies to the thread that made
// it, as long as it lives.
class HevcBudget {
 public:
  explicit HevcBudget(int64_t max_pixels);
  ~HevcBudget();
  HevcBudget(const HevcBudget&) = delete;
  HevcBudget& operator=(const HevcBudget&) = delete;

  int64_t max_pixels;  // of one picture
  int64_t pixels_left;
  bool exceeded = false;
  // Of the first picture: heif_chroma, and what its stream says about colours.
  std::optional<int> chroma;
  int matrix = 2;  // unspecified
  bool full_range = false;
};

// Call before reading a file.
void register_hevc_plugin();

}  // namespace valora::media
