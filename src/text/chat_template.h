// A model's own chat template (Jinja), as transformers finds, fills and renders it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "text/chat.h"

namespace valora::text {

struct ChatTemplateSettings {
  Json special_tokens =
      Json::object();  // variables by name (bos_token …), as read_special_tokens gives them
  // What stands for an image or video where the template takes a message's content as one string.
  std::string image_placeholder, video_placeholder;
  std::function<std::chrono::system_clock::time_point()>
      now{};  // of strftime_now; the system's clock where empty
};

// Parses the template; `what` names it in messages. Refuses (kUnprocessable) any construct that is
// not supported, with its name and line. The format that comes back gives templates a message's
// content as a list of parts where they go through it, else as one string (a text-only message's as
// a string where they can take both); renders within limits of steps and memory; and takes any
// variables, of which "messages" cannot be set.
Result<std::unique_ptr<ChatFormat>> make_chat_template(std::string_view source,
                                                       const std::string& what,
                                                       ChatTemplateSettings settings);

struct ChatTemplateSource {
  std::string text;
  std::string path;  // the file it comes from
};
// The template of a model's folder; nullopt where it has none. chat_template.json before
// chat_template.jinja before "chat_template" of processor_config.json and of tokenizer_config.json,
// the "default" one of several.
Result<std::optional<ChatTemplateSource>> find_chat_template(const std::string& dir);
// A file with a template, or a .json file with one under "chat_template".
Result<ChatTemplateSource> read_chat_template(const std::string& path);

// bos_token, eos_token and the other special tokens of tokenizer_config.json and
// special_tokens_map.json, by name.
Result<Json> read_special_tokens(const std::string& dir);

}  // namespace valora::text
