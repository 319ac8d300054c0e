#include "models/model.h"

namespace valora::models {

at::Tensor Model::embed(const Batch&) const {
  TORCH_CHECK(false, spec_.architecture, " has no decoder");
}

std::unique_ptr<Encoding> Model::begin_encoding(std::vector<VisualItem>, PieceSize) const {
  TORCH_CHECK(false, spec_.architecture, " does not support images");
}

std::vector<at::Tensor> Model::encode(std::span<const VisualItem> items) const {
  const auto encoding = begin_encoding({items.begin(), items.end()}, {});
  while (!encoding->done()) encoding->advance();
  return encoding->take();
}

}  // namespace valora::models
