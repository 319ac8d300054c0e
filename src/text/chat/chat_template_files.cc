// Reads the chat template and the special tokens of a model's folder.
#include <array>

#include "base/files/file.h"
#include "base/tensors/gguf.h"
#include "base/tensors/gguf_files.h"
#include "jinja/budget.h"
#include "text/chat/chat_template.h"
#include "text/gguf/tokenizer.h"

namespace valora::text {
namespace {

constexpr std::array<std::string_view, 7> kTokenNames = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

Error wrong(const std::string& path, const std::string& why) {
  return unprocessable(path + ": " + why, path);
}

// "chat_template" in a file: one template, or several named ones, of which "default" is used.
Result<std::optional<std::string>> template_in(const Json& json, const std::string& path) {
  if (!json.is_object()) return wrong(path, "must be an object");
  const auto it = json.find("chat_template");
  if (it == json.end() || it->is_null()) return std::optional<std::string>{};
  if (it->is_string()) return std::optional(it->get<std::string>());
  if (it->is_object()) {
    if (const auto named = it->find("default"); named != it->end() && named->is_string())
      return std::optional(named->get<std::string>());
    return wrong(path, "\"chat_template\" has no template named \"default\"");
  }
  if (!it->is_array())
    return wrong(path, "\"chat_template\" must be a string or a list of templates with names");
  std::optional<std::string> found;
  for (const Json& entry : *it) {
    VALORA_TRY(name, required_field<std::string>(entry, "name"));
    VALORA_TRY(text, required_field<std::string>(entry, "template"));
    if (name == "default") found = std::move(text);
  }
  if (!found) return wrong(path, "\"chat_template\" has no template named \"default\"");
  return found;
}

Result<std::optional<ChatTemplateSource>> template_in_json(const InputFolder& folder,
                                                           const char* name) {
  if (!folder.has(name)) return std::optional<ChatTemplateSource>{};
  const std::string path = folder.path_of(name);
  VALORA_TRY(json, read_json(folder, name));
  VALORA_TRY(text, template_in(json, path));
  if (!text) return std::optional<ChatTemplateSource>{};
  return std::optional(ChatTemplateSource{std::move(*text), path});
}

// A folder with a root belongs to an adapter, which is never a GGUF file.
std::optional<std::string> gguf_of(const FolderPath& dir) {
  return dir.root.empty() ? find_gguf(dir.path) : std::nullopt;
}

Result<std::optional<ChatTemplateSource>> template_in_gguf(const std::string& path) {
  VALORA_TRY(file, Gguf::open(path));
  VALORA_TRY(text, gguf_chat_template(file->metadata()));
  if (!text) return std::optional<ChatTemplateSource>{};
  return std::optional(ChatTemplateSource{std::move(*text), path});
}

// A token given as text, or as an added token with flags.
Result<Json> token_text(const Json& token, const std::string& path, const std::string& name) {
  if (token.is_null() || token.is_string()) return token;
  if (token.is_object()) {
    if (const auto content = token.find("content"); content != token.end() && content->is_string())
      return *content;
  }
  return wrong(path, "\"" + name + "\" must be a string or an object with a string \"content\"");
}

Status add_tokens(const Json& json, const std::string& path, Json& tokens) {
  if (!json.is_object()) return wrong(path, "must be an object");
  for (const std::string_view known : kTokenNames) {
    const std::string name(known);
    const auto it = json.find(name);
    if (it == json.end()) continue;
    VALORA_TRY(text, token_text(*it, path, name));
    if (!text.is_null()) tokens[name] = std::move(text);
  }
  if (const auto extra = json.find("extra_special_tokens");
      extra != json.end() && extra->is_object()) {
    for (const auto& [name, token] : extra->items()) {
      VALORA_TRY(text, token_text(token, path, name));
      if (!text.is_null()) tokens[name] = std::move(text);
    }
  }
  const auto more = json.find("additional_special_tokens");
  if (more == json.end() || !more->is_array() || more->empty()) return {};
  Json list = Json::array();
  for (const Json& token : *more) {
    VALORA_TRY(text, token_text(token, path, "additional_special_tokens"));
    list.push_back(std::move(text));
  }
  tokens["additional_special_tokens"] = std::move(list);
  return {};
}

}  // namespace

Result<std::optional<ChatTemplateSource>> find_chat_template(const FolderPath& dir) {
  if (const auto gguf = gguf_of(dir)) return template_in_gguf(*gguf);
  VALORA_TRY(folder, InputFolder::open(dir));
  VALORA_TRY(legacy, template_in_json(folder, "chat_template.json"));
  if (legacy) return legacy;
  constexpr const char* kJinja = "chat_template.jinja";
  if (folder.has(kJinja)) {
    VALORA_TRY(text, folder.text(kJinja, jinja::kMaxSourceBytes));
    return std::optional(ChatTemplateSource{std::move(text), folder.path_of(kJinja)});
  }
  VALORA_TRY(processor, template_in_json(folder, "processor_config.json"));
  if (processor) return processor;
  return template_in_json(folder, "tokenizer_config.json");
}

Result<ChatTemplateSource> read_chat_template(const std::string& path) {
  if (path.ends_with(".json")) {
    VALORA_TRY(json, read_json_file(path));
    VALORA_TRY(text, template_in(json, path));
    if (!text) return wrong(path, "has no \"chat_template\"");
    return ChatTemplateSource{std::move(*text), path};
  }
  VALORA_TRY(text, read_file(path, jinja::kMaxSourceBytes));
  return ChatTemplateSource{std::move(text), path};
}

Result<Json> read_special_tokens(const FolderPath& dir) {
  if (const auto gguf = gguf_of(dir)) {
    VALORA_TRY(file, Gguf::open(*gguf));
    return gguf_special_tokens(file->metadata());
  }
  VALORA_TRY(folder, InputFolder::open(dir));
  Json tokens = Json::object();
  constexpr const char *kConfig = "tokenizer_config.json", *kMap = "special_tokens_map.json";
  bool complete = false;
  if (folder.has(kConfig)) {
    VALORA_TRY(config, read_json(folder, kConfig));
    VALORA_CHECK(add_tokens(config, folder.path_of(kConfig), tokens));
    complete = config.contains("added_tokens_decoder");
  }
  // As in transformers, the older file is used only if the newer one does not list its tokens.
  if (!complete && folder.has(kMap)) {
    VALORA_TRY(map, read_json(folder, kMap));
    VALORA_CHECK(add_tokens(map, folder.path_of(kMap), tokens));
  }
  return tokens;
}

}  // namespace valora::text
