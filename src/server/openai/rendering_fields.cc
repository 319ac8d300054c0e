#include "server/openai/rendering_fields.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "server/openai/fields.h"

namespace valora::server {
namespace {

constexpr const char* kKwargs = "mm_processor_kwargs";

Status parse_template(const Json& body, const RequestLimits& limits, ChatPrompt& prompt) {
  VALORA_TRY(source, field_or<std::string>(body, "chat_template", ""));
  if (source.empty()) return {};
  if (!limits.chat_templates)
    return not_implemented(
        "\"chat_template\" is not supported by this server; it was started without "
        "--trust-request-chat-template",
        "chat_template");
  prompt.chat_template = std::move(source);
  return {};
}

Status parse_media_settings(const Json& body, MediaSettings& settings) {
  const Json& kwargs = member(body, kKwargs);
  if (kwargs.is_null()) return {};
  if (!kwargs.is_object())
    return invalid(fmt::format("\"{}\" must be an object", kKwargs), kKwargs);
  for (const auto& [key, value] : kwargs.items()) {
    if (value.is_null()) continue;
    const bool pixels = key == "min_pixels" || key == "max_pixels";
    if (!pixels && key != "fps")
      return not_implemented(fmt::format("\"{}.{}\" is not supported by this server; it takes "
                                         "min_pixels, max_pixels and fps",
                                         kKwargs, shortened(key)),
                             kKwargs);
    if (pixels ? !value.is_number_integer() : !value.is_number())
      return invalid(
          fmt::format("\"{}.{}\" must be {}", kKwargs, key, pixels ? "an integer" : "a number"),
          kKwargs);
    if (key == "fps")
      settings.fps = value.get<double>();
    else
      (key == "min_pixels" ? settings.min_pixels : settings.max_pixels) = value.get<int64_t>();
  }
  return {};
}

}  // namespace

Status parse_rendering(const Json& body, const RequestLimits& limits, ChatPrompt& prompt) {
  VALORA_CHECK(parse_template(body, limits, prompt));
  return parse_media_settings(body, prompt.media_settings);
}

}  // namespace valora::server
