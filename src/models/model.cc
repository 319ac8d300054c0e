#include "models/model.h"

#include <algorithm>

namespace valora::models {

std::unique_ptr<Encoding> Model::begin_encoding(std::vector<VisualItem>, PieceSize) const {
  TORCH_CHECK(false, spec_.architecture, " takes no images");
}

std::vector<at::Tensor> Model::encode(std::span<const VisualItem> items) const {
  const auto encoding = begin_encoding({items.begin(), items.end()}, {});
  while (!encoding->done()) encoding->advance();
  return encoding->take();
}

int64_t length_of(std::span<const int32_t> positions) {
  return positions.empty() ? 0 : int64_t{std::ranges::max(positions)} + 1;
}

Positions text_positions(int tokens, int axes) {
  Positions positions;
  positions.prompt.reserve(static_cast<size_t>(tokens) * axes);
  for (int a = 0; a < axes; ++a)
    for (int i = 0; i < tokens; ++i) positions.prompt.push_back(i);
  return positions;
}

}  // namespace valora::models
