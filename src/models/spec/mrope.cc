#include "models/spec/positions.h"

#include <algorithm>

namespace valora::models {
namespace {

// The position of temporal patch t, relative to the first.
int32_t time_position(const ModelSpec& spec, const media::VisualInput& input, int t) {
  if (spec.time_positions_per_second == 0 || input.kind == media::MediaKind::kImage) return t;
  // In fp32, as in transformers 5: when the time falls on a whole position, rounding decides.
  const float interval = static_cast<float>(spec.time_positions_per_second) *
                         static_cast<float>(input.seconds_per_grid);
  return static_cast<int32_t>(std::clamp(static_cast<float>(t) * interval, 0.0f, 16e6f));
}

}  // namespace

Positions mrope_positions(const ModelSpec& spec, int tokens, std::span<const VisualSpan> visual) {
  Positions positions;
  positions.prompt.resize(static_cast<size_t>(tokens) * 3);
  int32_t* axis[3] = {positions.prompt.data(), positions.prompt.data() + tokens,
                      positions.prompt.data() + 2 * tokens};
  int token = 0, next = 0;
  const auto text_until = [&](int end) {
    for (; token < end; ++token, ++next) axis[0][token] = axis[1][token] = axis[2][token] = next;
  };
  for (const VisualSpan& span : visual) {
    text_until(span.token_begin);
    const media::VisualInput& in = *span.input;
    const int h = in.grid_h / spec.visual_merge, w = in.grid_w / spec.visual_merge,
              frames = span.rows / (h * w);
    for (int t = 0; t < frames; ++t) {
      const int32_t time = next + time_position(spec, in, t);
      for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x, ++token)
          axis[0][token] = time, axis[1][token] = next + y, axis[2][token] = next + x;
    }
    next += std::max({time_position(spec, in, frames - 1) + 1, h, w});
  }
  text_until(tokens);
  positions.delta = next - tokens;
  return positions;
}

}  // namespace valora::models
