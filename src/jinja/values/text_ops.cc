#include "jinja/values/text_ops.h"

#include <algorithm>

#include "jinja/values/casing_table.h"
#include "jinja/values/format.h"

namespace valora::jinja {
namespace {

// The last code point and its length in bytes. The text must not be empty.
std::pair<char32_t, size_t> last_code_point(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return {decode_utf8(text.substr(begin)).code_point, text.size() - begin};
}

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

std::vector<std::string_view> split_at_space(std::string_view text, int64_t limit) {
  std::vector<std::string_view> parts;
  for (;;) {
    text = strip(text, Side::kLeft);
    if (text.empty()) break;
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.push_back(strip(text, Side::kLeft));
      break;
    }
    size_t end = 0;
    while (end < text.size()) {
      const Utf8Step step = decode_utf8(text.substr(end));
      if (is_space(step.code_point)) break;
      end += step.length;
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return parts;
}

std::vector<std::string_view> split_at_space_from_right(std::string_view text, int64_t limit) {
  std::vector<std::string_view> parts;
  for (;;) {
    text = strip(text, Side::kRight);
    if (text.empty()) break;
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.push_back(text);
      break;
    }
    size_t begin = text.size();
    while (begin > 0) {
      const auto [code_point, bytes] = last_code_point(text.substr(0, begin));
      if (is_space(code_point)) break;
      begin -= bytes;
    }
    parts.push_back(text.substr(begin));
    text = text.substr(0, begin);
  }
  std::ranges::reverse(parts);
  return parts;
}

}  // namespace

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

int64_t code_points(std::string_view text) {
  return std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

size_t byte_offset(std::string_view text, int64_t index) {
  size_t offset = 0;
  for (; index > 0 && offset < text.size(); --index)
    offset += decode_utf8(text.substr(offset)).length;
  return offset;
}

std::string_view strip(std::string_view text, Side side, std::optional<std::string_view> chars) {
  std::u32string set;
  if (chars) each_code_point(*chars, [&](char32_t c, std::string_view) { set.push_back(c); });
  std::ranges::sort(set);
  const auto stripped = [&](char32_t c) {
    return chars ? std::ranges::binary_search(set, c) : is_space(c);
  };
  while (side != Side::kRight && !text.empty()) {
    const Utf8Step step = decode_utf8(text);
    if (!stripped(step.code_point)) break;
    text.remove_prefix(step.length);
  }
  while (side != Side::kLeft && !text.empty()) {
    const auto [code_point, bytes] = last_code_point(text);
    if (!stripped(code_point)) break;
    text.remove_suffix(bytes);
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator, int64_t limit) {
  if (!separator) return split_at_space(text, limit);
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t at = text.find(*separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator->size());
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> split_from_right(std::string_view text,
                                               std::optional<std::string_view> separator,
                                               int64_t limit) {
  if (!separator) return split_at_space_from_right(text, limit);
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t at = text.rfind(*separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(at + separator->size()));
    text = text.substr(0, at);
  }
  parts.push_back(text);
  std::ranges::reverse(parts);
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t at = 0;
  while (!text.empty() && at < text.size()) {
    const Utf8Step step = decode_utf8(text.substr(at));
    if (!is_line_end(step.code_point)) {
      at += step.length;
      continue;
    }
    size_t end = at + step.length;
    if (step.code_point == '\r' && end < text.size() && text[end] == '\n') ++end;
    lines.push_back(text.substr(0, keep_ends ? end : at));
    text.remove_prefix(end);
    at = 0;
  }
  if (!text.empty()) lines.push_back(text);
  return lines;
}

int64_t count_of(std::string_view text, std::string_view part, int64_t limit) {
  int64_t count = 0;
  if (part.empty()) {
    count = code_points(text) + 1;
  } else {
    for (size_t at = text.find(part); at != std::string_view::npos;
         at = text.find(part, at + part.size()))
      ++count;
  }
  return limit < 0 ? count : std::min(count, limit);
}

std::string replace(std::string_view text, std::string_view from, std::string_view to,
                    int64_t limit) {
  int64_t left = count_of(text, from, limit);
  std::string out;
  if (from.empty()) {
    each_code_point(text, [&](char32_t, std::string_view character) {
      if (left-- > 0) out += to;
      out += character;
    });
    if (left > 0) out += to;
    return out;
  }
  for (; left > 0; --left) {
    const size_t at = text.find(from);
    out.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return out.append(text);
}

std::optional<bool> string_predicate(std::string_view name, std::string_view text) {
  if (name == "isascii")
    return std::ranges::all_of(text, [](char c) { return static_cast<signed char>(c) >= 0; });
  if (name == "isupper") return is_upper(text);
  if (name == "islower") return is_lower(text);
  const auto all = [&](auto holds) {
    bool every = !text.empty();
    each_code_point(text, [&](char32_t c, std::string_view) { every = every && holds(c); });
    return every;
  };
  const auto letter = [](char32_t c) { return general_category(c)[0] == 'L'; };
  const auto decimal = [](char32_t c) { return general_category(c) == "Nd"; };
  if (name == "isspace") return all(is_space);
  if (name == "isalpha") return all(letter);
  if (name == "isdecimal") return all(decimal);
  const auto numeric = [](char32_t c) { return is_numeric(c) || in_ranges(kOtherNumeric, c); };
  if (name == "isdigit")
    return all([&](char32_t c) { return decimal(c) || in_ranges(kOtherDigit, c); });
  if (name == "isnumeric") return all(numeric);
  if (name == "isalnum") return all([&](char32_t c) { return letter(c) || numeric(c); });
  return std::nullopt;
}

Result<Value> escaped(Budget& budget, const Value& value) {
  if (const auto* string = value.as<StrPtr>(); string && (*string)->markup) return value;
  VALORA_TRY(text, to_text(budget, value));
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += c;
    }
  }
  return make_string(budget, std::move(out), /*markup=*/true);
}

}  // namespace valora::jinja
