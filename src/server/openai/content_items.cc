#include "server/openai/content_items.h"

#include <fmt/format.h>

#include <utility>

#include "server/openai/fields.h"
#include "server/openai/messages.h"

namespace valora::server {
namespace {

constexpr size_t kMaxItems = 1024;

ContentPart picture(std::string url) { return MediaRef{MediaRef::Kind::kImage, std::move(url)}; }

Result<std::vector<ContentPart>> parse_content(Json& content, const std::string& path) {
  if (!content.is_array() || content.empty())
    return invalid(fmt::format("\"{}\" must be a list of parts", path), path);
  std::vector<ContentPart> parts;
  for (size_t i = 0; i < content.size(); ++i) {
    VALORA_TRY(part, parse_content_part(content[i], fmt::format("{}[{}]", path, i)));
    parts.push_back(std::move(part));
  }
  return parts;
}

// {"text": …} and {"image": URL}; pictures come first, as in the prompts of Qwen's embedders.
Result<ContentItem> parse_named(Json& value, const std::string& path) {
  std::vector<ContentPart> parts;
  for (const char* key : {"image", "text"}) {
    if (!value.contains(key) || value[key].is_null()) continue;
    if (!value[key].is_string())
      return invalid(fmt::format("\"{}.{}\" must be a string", path, key), path);
    auto text = std::move(value[key].get_ref<std::string&>());
    if (key == std::string_view("image"))
      parts.push_back(picture(std::move(text)));
    else
      parts.emplace_back(std::move(text));
  }
  if (parts.empty())
    return invalid(fmt::format("\"{}\" needs \"text\", \"image\" or \"content\"", path), path);
  if (auto* text = std::get_if<std::string>(&parts.front()); parts.size() == 1 && text)
    return ContentItem(std::move(*text));
  return ContentItem(std::move(parts));
}

bool is_ids(const Json& value) {
  return value.is_array() && !value.empty() && value[0].is_number();
}

}  // namespace

Result<ContentItem> parse_item(Json& value, const std::string& path) {
  if (value.is_string()) {
    auto text = std::move(value.get_ref<std::string&>());
    if (!text.starts_with("data:image/")) return ContentItem(std::move(text));
    return ContentItem(std::vector<ContentPart>{picture(std::move(text))});
  }
  if (!value.is_object())
    return invalid(fmt::format("\"{}\" must be a string or an object", path), path);
  if (value.contains("content")) {
    VALORA_TRY(parts, parse_content(value["content"], path + ".content"));
    return ContentItem(std::move(parts));
  }
  if (!value.contains("type")) return parse_named(value, path);
  VALORA_TRY(part, parse_content_part(value, path));
  return ContentItem(std::vector<ContentPart>{std::move(part)});
}

Result<std::vector<ContentItem>> parse_items(Json& body, const std::string& key, bool ids) {
  if (!body.contains(key) || body[key].is_null())
    return invalid(fmt::format("\"{}\" is missing", key), key);
  Json& value = body[key];
  std::vector<ContentItem> items;
  if (!value.is_array()) {
    VALORA_TRY(item, parse_item(value, key));
    items.push_back(std::move(item));
    return items;
  }
  if (ids && is_ids(value)) {
    VALORA_TRY(tokens, integers(value, key));
    items.emplace_back(std::move(tokens));
    return items;
  }
  if (value.empty() || value.size() > kMaxItems)
    return invalid(fmt::format("\"{}\" must have from 1 to {} items", key, kMaxItems), key);
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", key, i);
    if (ids && value[i].is_array()) {
      VALORA_TRY(tokens, integers(value[i], path));
      items.emplace_back(std::move(tokens));
    } else {
      VALORA_TRY(item, parse_item(value[i], path));
      items.push_back(std::move(item));
    }
  }
  return items;
}

const std::string* text_of(const ContentItem& item) { return std::get_if<std::string>(&item); }

std::vector<ContentPart> parts_of(const ContentItem& item) {
  if (const auto* text = text_of(item)) return {*text};
  const auto* parts = std::get_if<std::vector<ContentPart>>(&item);
  return parts ? *parts : std::vector<ContentPart>();
}

}  // namespace valora::server
