// Upper, lower and title case of strings.
#include <utf8proc.h>

#include <algorithm>
#include <span>

#include "jinja/values/casing_table.h"
#include "jinja/values/text_ops.h"

namespace valora::jinja {
namespace {

constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2, kDottedI = 0x130;

bool append_long(std::string& out, std::span<const LongCase> table, char32_t c) {
  const auto it = std::ranges::lower_bound(table, c, {}, &LongCase::code_point);
  if (it == table.end() || it->code_point != c) return false;
  out += it->text;
  return true;
}

void append_upper(std::string& out, char32_t c) {
  if (!append_long(out, kLongUpper, c))
    append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<int32_t>(c))));
}

void append_title(std::string& out, char32_t c) {
  if (!append_long(out, kLongTitle, c))
    append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<int32_t>(c))));
}

bool is_upper_letter(char32_t c) {
  return general_category(c) == "Lu" || in_ranges(kOtherUpper, c);
}
bool is_lower_letter(char32_t c) {
  return general_category(c) == "Ll" || in_ranges(kOtherLower, c);
}
bool is_cased(char32_t c) {
  return is_upper_letter(c) || is_lower_letter(c) || general_category(c) == "Lt";
}

bool is_case_ignorable(char32_t c) {
  const std::string_view category = general_category(c);
  return category == "Mn" || category == "Me" || category == "Cf" || category == "Lm" ||
         category == "Sk" || c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2019;
}

// A sigma is final if a cased letter precedes it and none follows.
bool is_final_sigma(const std::u32string& text, size_t at) {
  size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

void append_lower(std::string& out, const std::u32string& text, size_t at) {
  const char32_t c = text[at];
  if (c == kDottedI) {
    out += "i\xCC\x87";
  } else if (c == kSigma && is_final_sigma(text, at)) {
    append_utf8(out, kFinalSigma);
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<int32_t>(c))));
  }
}

std::u32string code_points_of(std::string_view text) {
  std::u32string out;
  each_code_point(text, [&](char32_t c, std::string_view) { out.push_back(c); });
  return out;
}

// Characters after which the title filter starts a new word.
bool begins_word(char32_t c) {
  return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
}

}  // namespace

std::string upper(std::string_view text) {
  std::string out;
  each_code_point(text, [&](char32_t c, std::string_view) { append_upper(out, c); });
  return out;
}

std::string lower(std::string_view text) {
  const std::u32string all = code_points_of(text);
  std::string out;
  for (size_t i = 0; i < all.size(); ++i) append_lower(out, all, i);
  return out;
}

std::string capitalize(std::string_view text) {
  const std::u32string all = code_points_of(text);
  std::string out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i == 0)
      append_title(out, all[i]);
    else
      append_lower(out, all, i);
  }
  return out;
}

std::string title(std::string_view text) {
  const std::u32string all = code_points_of(text);
  std::string out;
  bool inside = false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (inside)
      append_lower(out, all, i);
    else
      append_title(out, all[i]);
    inside = is_cased(all[i]);
  }
  return out;
}

std::string title_filter(std::string_view text) {
  const std::u32string all = code_points_of(text);
  std::string out;
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    while (end < all.size() && begins_word(all[end])) append_utf8(out, all[end++]);
    size_t word = end;
    while (end < all.size() && !begins_word(all[end])) ++end;
    if (word < end) append_upper(out, all[word]);
    const std::u32string rest = all.substr(std::min(word + 1, end), end - std::min(word + 1, end));
    for (size_t k = 0; k < rest.size(); ++k) append_lower(out, rest, k);
    i = end;
  }
  return out;
}

std::string swap_case(std::string_view text) {
  const std::u32string all = code_points_of(text);
  std::string out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_upper_letter(all[i]))
      append_lower(out, all, i);
    else if (is_lower_letter(all[i]))
      append_upper(out, all[i]);
    else
      append_utf8(out, all[i]);
  }
  return out;
}

bool is_upper(std::string_view text) {
  bool any = false, wrong = false;
  each_code_point(text, [&](char32_t c, std::string_view) {
    any = any || is_upper_letter(c);
    wrong = wrong || (is_cased(c) && !is_upper_letter(c));
  });
  return any && !wrong;
}

bool is_lower(std::string_view text) {
  bool any = false, wrong = false;
  each_code_point(text, [&](char32_t c, std::string_view) {
    any = any || is_lower_letter(c);
    wrong = wrong || (is_cased(c) && !is_lower_letter(c));
  });
  return any && !wrong;
}

}  // namespace valora::jinja
