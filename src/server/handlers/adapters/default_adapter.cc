#include "server/handlers/adapters/default_adapter.h"

#include <fmt/format.h>

#include "api/media_limits.h"

namespace valora::server {

void set_default_adapter(const Service& service, GenerationBody& body) {
  const DefaultAdapters& defaults = service.options.default_adapters;
  Target& target = body.target;
  if (!service.is_base(target.model) || !target.lora.empty()) return;
  const auto* chat = std::get_if<ChatPrompt>(&body.prompts.front());
  if (!chat) return;
  const MediaCounts media = count_media(*chat);
  const std::string image = media.images > 0 ? defaults.image : "";
  const std::string video = media.videos > 0 ? defaults.video : "";
  if (!image.empty() && !video.empty() && image != video) return;
  target.default_adapter = image.empty() ? video : image;
}

Status check_default_adapters(const DefaultAdapters& defaults, const Engine& engine) {
  for (const std::string& name : {defaults.image, defaults.video})
    if (!name.empty() && !engine.adapter(name))
      return invalid(fmt::format("the default adapter \"{}\" is not loaded", name),
                     "default_mm_loras");
  return {};
}

}  // namespace valora::server
