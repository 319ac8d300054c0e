// Parses chat messages with text, image and video parts, tool calls and their results, and the
// fields that affect how they become a prompt.
#pragma once

#include <string>

#include "api/media_limits.h"
#include "api/request.h"
#include "base/json/json.h"
#include "base/result.h"

namespace valora::server {

// What a server allows requests to ask for.
struct RequestLimits {
  RequestLimits() = default;
  RequestLimits(const MediaLimits& media_limits)
      : media(media_limits) {}  // NOLINT: the rest is
                                // the default
  MediaLimits media;
  int max_logprobs = 20;
  bool chat_templates = false;  // requests may bring their own templates
  bool plain_texts = false;     // ChatPrompt::plain_texts
};

// A part of a message's content. Moves the strings out of `part`.
Result<ContentPart> parse_content_part(Json& part, const std::string& path);

// Errors name the path of the wrong value ("messages[1].content[0].image_url.url"). Moves the
// strings out of `body`.
Result<ChatPrompt> parse_messages(Json& body, const RequestLimits& limits);

// An error if a message has media outside its content, as Ollama and trainers send them, because
// they would be lost.
Status refuse_media_keys(const Json& message, const std::string& path);

// Parses "chat_template",
// "mm_processor_kwargs" and "media_io_kwargs". The prompt must already have its messages.
Status parse_rendering(const Json& body, const RequestLimits& limits, ChatPrompt& prompt);

// Media settings, as written for Qwen's qwen_vl_utils: next to "image_url" or "video_url", or
// inside it. Those of a part of `type`, "image_url" or "video_url". kInvalidArgument, naming the
// setting and the part's path, if a value is not a number or the setting does not apply to this
// kind of media.
Result<MediaSettings> part_settings(const Json& part, const std::string& type,
                                    const std::string& path);

}  // namespace valora::server
