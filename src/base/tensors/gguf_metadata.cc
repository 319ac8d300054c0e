// Reads GGUF metadata.
#include <cmath>
#include <cstring>

#include "base/tensors/gguf.h"
#include "base/text/strings.h"
#include "base/text/unicode.h"

namespace valora {

const GgufMetadata::Value* GgufMetadata::find(const std::string& key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

Error GgufMetadata::wrong(const std::string& key, const std::string& why) const {
  return unprocessable(path_ + ": \"" + shortened(to_valid_utf8(key)) + "\" " + why, path_);
}

Result<int64_t> GgufMetadata::integer(const std::string& key,
                                      std::optional<int64_t> fallback) const {
  const Value* value = find(key);
  if (!value && fallback) return *fallback;
  if (!value) return wrong(key, "is missing");
  if (const auto* number = std::get_if<int64_t>(value)) return *number;
  return wrong(key, "must be an integer");
}

Result<double> GgufMetadata::number(const std::string& key, std::optional<double> fallback) const {
  const Value* value = find(key);
  if (!value && fallback) return *fallback;
  if (!value) return wrong(key, "is missing");
  if (const auto* number = std::get_if<int64_t>(value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<double>(value); number && std::isfinite(*number))
    return *number;
  return wrong(key, "must be a finite number");
}

Result<bool> GgufMetadata::flag(const std::string& key, bool fallback) const {
  const Value* value = find(key);
  if (!value) return fallback;
  if (const auto* flag = std::get_if<bool>(value)) return *flag;
  return wrong(key, "must be true or false");
}

Result<std::string> GgufMetadata::text(const std::string& key,
                                       std::optional<std::string> fallback) const {
  const Value* value = find(key);
  if (!value && fallback) return *std::move(fallback);
  if (!value) return wrong(key, "is missing");
  const auto* text = std::get_if<std::string_view>(value);
  if (!text) return wrong(key, "must be a string");
  if (!is_valid_utf8(*text)) return wrong(key, "is not UTF-8");
  return std::string(*text);
}

Result<std::vector<std::string_view>> GgufMetadata::texts(const std::string& key) const {
  std::vector<std::string_view> texts;
  const Value* value = find(key);
  if (!value) return texts;
  const auto* list = std::get_if<Array>(value);
  if (!list || list->type != kGgufText) return wrong(key, "must be a list of strings");
  texts.reserve(list->count);  // each takes at least 8 bytes for its length
  for (const uint8_t* at = list->bytes.data(); texts.size() < list->count;) {
    uint64_t length;
    std::memcpy(&length, at, sizeof length);
    texts.emplace_back(reinterpret_cast<const char*>(at) + sizeof length, length);
    at += sizeof length + length;
  }
  return texts;
}

Result<std::vector<double>> GgufMetadata::numbers(const std::string& key) const {
  std::vector<double> numbers;
  const Value* value = find(key);
  if (!value) return numbers;
  if (const auto* one = std::get_if<int64_t>(value)) return std::vector{static_cast<double>(*one)};
  if (const auto* one = std::get_if<double>(value)) return std::vector{*one};
  if (const auto* one = std::get_if<bool>(value)) return std::vector{*one ? 1.0 : 0.0};
  const auto* list = std::get_if<Array>(value);
  if (!list || list->type == kGgufText) return wrong(key, "must be a list of numbers");
  const size_t size = list->bytes.size() / std::max<uint64_t>(list->count, 1);
  numbers.reserve(list->count);
  for (uint64_t i = 0; i < list->count; ++i)
    numbers.push_back(gguf_number(list->type, list->bytes.data() + i * size));
  return numbers;
}

std::vector<std::string> GgufMetadata::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

}  // namespace valora
