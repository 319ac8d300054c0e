#include "server/openai/rendering_fields.h"

#include <fmt/format.h>

#include <algorithm>

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

Error refused(std::string_view key, std::string_view what) {
  return not_implemented(
      fmt::format("\"{}.{}\"{} is not supported by this server", kKwargs, shortened(key, 60), what),
      kKwargs);
}

Error wrong(std::string_view key, std::string_view expected) {
  return invalid(fmt::format("\"{}.{}\" must be {}", kKwargs, key, expected), kKwargs);
}

// Of the conversation's videos.
struct Videos {
  size_t count = 0;
  size_t lists = 0;  // of frames, which are taken as they are
};

Videos videos_of(const ChatPrompt& prompt) {
  Videos videos;
  for (const ChatMessage& message : prompt.messages)
    for (const ContentPart& part : message.parts) {
      const auto* media = std::get_if<MediaRef>(&part);
      if (media == nullptr || media->kind != MediaRef::Kind::kVideo) continue;
      ++videos.count;
      videos.lists += media->url.starts_with("data:video/jpeg;base64,");
    }
  return videos;
}

// A number, or a list of one for all videos or of one for each, as Qwen's client sends it.
Status read_fps(const Json& value, const Videos& videos, std::optional<double>& fps) {
  if (value.is_number()) {
    fps = value.get<double>();
    return {};
  }
  if (!value.is_array() ||
      !std::ranges::all_of(value, [](const Json& rate) { return rate.is_number(); }))
    return wrong("fps", "a number or a list of numbers");
  if (value.empty()) return {};
  if (value.size() != 1 && value.size() != videos.count)
    return wrong("fps", fmt::format("one number, or one for each of the {} videos, not {}",
                                    videos.count, value.size()));
  for (const Json& rate : value)
    if (rate != value.front()) return refused("fps", " with different rates of videos");
  fps = value.front().get<double>();
  return {};
}

// The frames of lists are never sampled, those of files always.
Status check_sampling(const Json& value, const Videos& videos) {
  if (!value.is_boolean()) return wrong("do_sample_frames", "a boolean");
  if (value == true && videos.lists > 0)
    return refused("do_sample_frames", " true for a list of frames");
  if (value == false && videos.lists < videos.count)
    return refused("do_sample_frames", " false for a video file (send a list of frames)");
  return {};
}

Status read_pixels(const std::string& key, const Json& value, std::optional<int64_t>& pixels) {
  if (!value.is_number_integer()) return wrong(key, "an integer");
  pixels = value.get<int64_t>();
  return {};
}

Status parse_media_settings(const Json& body, ChatPrompt& prompt) {
  const Json& kwargs = member(body, kKwargs);
  if (kwargs.is_null()) return {};
  if (!kwargs.is_object())
    return invalid(fmt::format("\"{}\" must be an object", kKwargs), kKwargs);
  MediaSettings& settings = prompt.media_settings;
  const Videos videos = videos_of(prompt);
  for (const auto& [key, value] : kwargs.items()) {
    if (value.is_null()) continue;
    if (key == "fps") {
      VALORA_CHECK(read_fps(value, videos, settings.fps));
    } else if (key == "do_sample_frames") {
      VALORA_CHECK(check_sampling(value, videos));
    } else if (key == "min_pixels" || key == "max_pixels") {
      VALORA_CHECK(
          read_pixels(key, value, key == "min_pixels" ? settings.min_pixels : settings.max_pixels));
    } else {
      return refused(key, " (it takes min_pixels, max_pixels, fps and do_sample_frames)");
    }
  }
  return {};
}

}  // namespace

Status parse_rendering(const Json& body, const RequestLimits& limits, ChatPrompt& prompt) {
  VALORA_CHECK(parse_template(body, limits, prompt));
  return parse_media_settings(body, prompt);
}

}  // namespace valora::server
