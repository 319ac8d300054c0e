#include "models/model.h"

namespace valora::models {

std::vector<at::Tensor> Model::encode(std::span<const VisualItem>) const {
  TORCH_CHECK(false, spec_.architecture, " takes no images");
}

Positions text_positions(int tokens, int axes) {
  Positions positions;
  positions.prompt.reserve(static_cast<size_t>(tokens) * axes);
  for (int a = 0; a < axes; ++a)
    for (int i = 0; i < tokens; ++i) positions.prompt.push_back(i);
  return positions;
}

}  // namespace valora::models
