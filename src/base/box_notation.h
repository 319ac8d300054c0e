// How a model writes the boxes of things in a picture.
#pragma once

#include <cstdint>

namespace valora {

enum class BoxStyle : uint8_t {
  // "<ref>car</ref><box>(12,30),(55,61)</box>" as plain text; without labels "[12,30,55,61]".
  kText,
  // [{"bbox_2d": [12, 30, 55, 61], "label": "car"}], alone or in a code block.
  kJson,
  // As kText, with added tokens as marks, which differ among tokenizers; a box may also be
  // "[12, 30, 55, 61]", and several may stand in one pair of marks.
  kMarks,
};

struct BoxNotation {
  int scale = 1000;  // units per side of the picture; 0: pixels of the picture as the model sees it
  bool labels = true;
  BoxStyle style = BoxStyle::kText;
};

}  // namespace valora
