// A model's own chat template (Jinja), located and rendered as in transformers.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/input_folder.h"
#include "base/json/json.h"
#include "base/result.h"
#include "text/chat/chat.h"

namespace valora::text {

struct ChatTemplateSettings {
  // Variables by name (bos_token …), from read_special_tokens().
  Json special_tokens = Json::object();
  // Written for an image or video if the template expects a message's content as one string.
  std::string image_placeholder, video_placeholder;
  // For strftime_now; the system clock if empty.
  std::function<std::chrono::system_clock::time_point()> now{};
};

// Parses the template. `what` names it in messages. Unsupported constructs are refused
// (kUnprocessable) by name and line. A message's content is passed as a list of parts if the
// template iterates over it, otherwise as one string; if the template accepts both, text-only
// content is a string. Rendering is limited in steps and memory. A request may set any variable
// except reserved ones such as "messages".
Result<std::unique_ptr<ChatFormat>> make_chat_template(std::string_view source,
                                                       const std::string& what,
                                                       ChatTemplateSettings settings);

struct ChatTemplateSource {
  std::string text;
  std::string path;  // the file it was read from
};
// The template of a model's folder; nullopt if there is none. The order is chat_template.json,
// chat_template.jinja, then "chat_template" in processor_config.json and in tokenizer_config.json.
// Among several, the one named "default" is used. For a GGUF file (find_gguf()): its own.
Result<std::optional<ChatTemplateSource>> find_chat_template(const FolderPath& dir);
// Reads a template file, or a .json file with the template under "chat_template".
Result<ChatTemplateSource> read_chat_template(const std::string& path);

// bos_token, eos_token and the other special tokens of tokenizer_config.json and
// special_tokens_map.json, by name.
Result<Json> read_special_tokens(const FolderPath& dir);

}  // namespace valora::text
