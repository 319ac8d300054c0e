#include "server/openai/messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/media_fields.h"
#include "base/video.h"
#include "server/openai/fields.h"

namespace valora::server {
namespace {

constexpr const char *kKwargs = "mm_processor_kwargs", *kIoKwargs = "media_io_kwargs";

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

// The conversation's videos, in order.
std::vector<MediaRef*> videos_of(ChatPrompt& prompt) {
  std::vector<MediaRef*> videos;
  for (ChatMessage& message : prompt.messages)
    for (ContentPart& part : message.parts)
      if (auto* media = std::get_if<MediaRef>(&part);
          media != nullptr && media->kind == MediaRef::Kind::kVideo)
        videos.push_back(media);
  return videos;
}

// One rate for all videos, or one per video.
Status apply_rates(const ProcessorKwargs& kwargs, const std::vector<MediaRef*>& videos,
                   MediaSettings& request) {
  const std::vector<double>& rates = kwargs.rates;
  if (rates.empty()) return {};
  request.fps = rates.front();
  if (rates.size() == 1) return {};
  if (rates.size() != videos.size())
    return invalid(
        fmt::format("\"{}.{}\" must be one number, or one for each of the {} videos, not {}",
                    kKwargs, kwargs.rates_key, videos.size(), rates.size()),
        kKwargs);
  for (size_t i = 0; i < videos.size(); ++i) videos[i]->settings.fps = rates[i];
  return {};
}

// Lists of frames are used as they are, so sampling settings do not apply.
Status check_lists(const MediaSettings& request, const std::vector<MediaRef*>& videos) {
  if (std::ranges::none_of(videos, [](const MediaRef* video) { return is_frame_list(video->url); }))
    return {};
  if (request.do_sample_frames == true)
    return not_implemented(
        fmt::format("\"{}.do_sample_frames\" true for a list of frames is not supported by this "
                    "server",
                    kKwargs),
        kKwargs);
  if (request.loader && !request.loader->keeps_all())
    return not_implemented(
        fmt::format("\"{}.video\" for a list of frames is not supported by this server; all "
                    "frames are used",
                    kIoKwargs),
        kIoKwargs);
  return {};
}

Status parse_media_settings(const Json& body, ChatPrompt& prompt) {
  VALORA_TRY(kwargs, read_processor_kwargs(member(body, kKwargs), kKwargs));
  VALORA_CHECK(read_io_kwargs(member(body, kIoKwargs), kIoKwargs, kwargs.settings));
  const std::vector<MediaRef*> videos = videos_of(prompt);
  VALORA_CHECK(apply_rates(kwargs, videos, kwargs.settings));
  VALORA_CHECK(check_lists(kwargs.settings, videos));
  prompt.media_settings = kwargs.settings;
  prompt.image_settings = kwargs.images;
  prompt.video_settings = kwargs.videos;
  return {};
}

}  // namespace

Status parse_rendering(const Json& body, const RequestLimits& limits, ChatPrompt& prompt) {
  VALORA_CHECK(parse_template(body, limits, prompt));
  return parse_media_settings(body, prompt);
}

}  // namespace valora::server
