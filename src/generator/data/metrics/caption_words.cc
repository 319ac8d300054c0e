#include "generator/data/metrics/caption_words.h"

#include "generator/data/answer_text.h"

namespace valora::generator {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80; }
bool is_word(char c) { return is_digit(c) || is_letter(c); }

bool joins(char before, char c, char after) {
  if (c == '\'' || c == '-') return is_word(before) && is_word(after);
  return (c == '.' || c == ',') && is_digit(before) && is_digit(after);
}

// Replaces “ ” – … and other signs (U+2000 to U+203F) by a space, and ’ by an apostrophe, as in
// plain text.
std::string in_plain_signs(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool sign = i + 2 < text.size() && text.substr(i, 2) == "\xE2\x80";
    out += !sign ? text[i] : text[i + 2] == '\x99' ? '\'' : ' ';
    if (sign) i += 2;
  }
  return out;
}

}  // namespace

std::vector<std::string> caption_words(std::string_view caption) {
  const std::string text = lower_case(in_plain_signs(caption));
  std::vector<std::string> words;
  bool within = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool belongs = is_word(text[i]) || (within && i + 1 < text.size() &&
                                              joins(text[i - 1], text[i], text[i + 1]));
    if (belongs && !within) words.emplace_back();
    if (belongs) words.back() += text[i];
    within = belongs;
  }
  return words;
}

}  // namespace valora::generator
