// A model's own chat template (Jinja), found and rendered as transformers does.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/input_folder.h"
#include "base/json.h"
#include "base/result.h"
#include "text/chat.h"

namespace valora::text {

struct ChatTemplateSettings {
  // Variables by name (bos_token …), from read_special_tokens.
  Json special_tokens = Json::object();
  // Written for an image or video if the template takes a message's content as one string.
  std::string image_placeholder, video_placeholder;
  // For strftime_now; the system clock if empty.
  std::function<std::chrono::system_clock::time_point()> now{};
};

// Parses the template. `what` names it in messages. Unsupported constructs are refused
// (kUnprocessable) by name and line. The format gives the template a message's content as a list of
// parts if the template iterates over it, otherwise as one string. If the template accepts both,
// text-only content is a string. Rendering is limited in steps and memory, and accepts all
// variables except "messages".
Result<std::unique_ptr<ChatFormat>> make_chat_template(std::string_view source,
                                                       const std::string& what,
                                                       ChatTemplateSettings settings);

struct ChatTemplateSource {
  std::string text;
  std::string path;  // the file that it was read from
};
// The template of a model's folder; nullopt if it has none. The order is chat_template.json,
// chat_template.jinja, then "chat_template" of processor_config.json and of tokenizer_config.json.
// If there are several, takes the one named "default". Of a GGUF file (find_gguf()): its own.
Result<std::optional<ChatTemplateSource>> find_chat_template(const FolderPath& dir);
// A template file, or a .json file with the template under "chat_template".
Result<ChatTemplateSource> read_chat_template(const std::string& path);

// bos_token, eos_token and the other special tokens of tokenizer_config.json and
// special_tokens_map.json, by name.
Result<Json> read_special_tokens(const FolderPath& dir);

}  // namespace valora::text
