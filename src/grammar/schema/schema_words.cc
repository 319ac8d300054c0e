#include "grammar/schema/schema_words.h"

namespace valora::grammar {
namespace {

int hexadecimal(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> without_percents(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hexadecimal(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hexadecimal(text[i + 2]) : -1;
    if (high < 0 || low < 0) return {};
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::optional<std::string> without_tildes(std::string_view part) {
  std::string out;
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] != '~') {
      out += part[i];
      continue;
    }
    if (++i == part.size() || (part[i] != '0' && part[i] != '1')) return {};
    out += part[i] == '0' ? '~' : '/';
  }
  return out;
}

}  // namespace

std::optional<SchemaPointer> schema_pointer(std::string_view ref) {
  if (!ref.starts_with('#')) return {};
  const auto decoded = without_percents(ref.substr(1));
  if (!decoded || (!decoded->empty() && decoded->front() != '/')) return {};
  SchemaPointer pointer;
  pointer.escaped = ref.find_first_of("%~") != std::string_view::npos;
  for (size_t begin = 1; begin <= decoded->size();) {
    const size_t end = std::min(decoded->find('/', begin), decoded->size());
    auto part = without_tildes(std::string_view(*decoded).substr(begin, end - begin));
    if (!part) return {};
    pointer.parts.push_back(*std::move(part));
    begin = end + 1;
  }
  return pointer;
}

}  // namespace valora::grammar
