#include "media/processors/processor.h"

namespace valora::media {

Result<std::optional<UniformSampling>> frame_choice(const ProcessorOverrides& asked) {
  const auto* rule = std::get_if<UniformSampling>(&asked.frames);
  ProcessorOverrides rest = asked;
  rest.frames = {};
  rest.frame_rate = {};  // no effect: these families' prompts contain no times
  const bool other = !rule && !std::holds_alternative<std::monostate>(asked.frames);
  if (other || rest != ProcessorOverrides{.kind = MediaKind::kVideo})
    return invalid(
        "this model resizes all pictures and frames to one size and accepts no settings other "
        "than the number or rate of a video's frames");
  return rule ? std::optional(*rule) : std::nullopt;
}

}  // namespace valora::media
