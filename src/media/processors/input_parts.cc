#include "media/processors/input_parts.h"

namespace valora::media {

void cut_parts(VisualInput& input) {
  if (!input.separable || input.grid_t < 2) return;
  const size_t values = input.patches.size() / size_t(input.grid_t);
  for (int i = 0; i < input.grid_t; ++i) {
    VisualInput part;
    part.kind = input.kind;
    part.grid_h = input.grid_h;
    part.grid_w = input.grid_w;
    part.patch_dim = input.patch_dim;
    part.patches = input.patches.part(size_t(i) * values, values);
    part.tokens = input.tokens / input.grid_t;
    part.digest = DigestBuilder()
                      .add("part")
                      .add(static_cast<int>(part.kind))
                      .add(part.grid_h)
                      .add(part.grid_w)
                      .add(std::span(part.patches.begin(), part.patches.end()))
                      .finish();
    input.parts.push_back(std::make_shared<const VisualInput>(std::move(part)));
  }
}

}  // namespace valora::media
