#include "media/frame_choice.h"

namespace valora::media {

Result<std::optional<UniformSampling>> frame_choice(const ProcessorOverrides& asked) {
  const auto* rule = std::get_if<UniformSampling>(&asked.frames);
  ProcessorOverrides rest = asked;
  rest.frames = {};
  rest.frame_rate = {};  // prompts have no times
  const bool other = !rule && !std::holds_alternative<std::monostate>(asked.frames);
  if (other || rest != ProcessorOverrides{.kind = MediaKind::kVideo})
    return invalid(
        "the model prepares all pictures and frames in one size, and takes no other settings "
        "than the number or rate of a video's frames");
  return rule ? std::optional(*rule) : std::nullopt;
}

}  // namespace valora::media
