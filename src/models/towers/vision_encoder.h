// The part of a model that sees: a vision tower with its projector.
#pragma once

#include <memory>
#include <vector>

#include "models/towers/encoding.h"

namespace valora::models {

class VisionEncoder {
 public:
  virtual ~VisionEncoder() = default;
  // Encodes images and videos together, piece by piece. The items' inputs must outlive the
  // encoding. Throws c10::Error if an item does not fit the tower.
  virtual std::unique_ptr<Encoding> begin(std::vector<VisualItem> items,
                                          PieceSize pieces) const = 0;
};

}  // namespace valora::models
