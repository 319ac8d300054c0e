#include "text/pretokenizers/regex_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/text/unicode.h"
#include "base/text/unicode_tables.h"

namespace valora::text {
namespace {

// White_Space and its complement as class items. PCRE2's \s also includes U+180E.
constexpr std::string_view kSpaceItems =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{"
    "205f}\\x{3000}";
constexpr std::string_view kNotSpaceItems =
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"
    "\\x{200b}-\\x{2027}"
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}";

constexpr std::array<std::string_view, 7> kGroupOpeners = {"(?:",  "(?i:", "(?=", "(?!",
                                                           "(?<=", "(?<!", "(?>"};

constexpr std::array<std::string_view, 31> kCategories = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N",  "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp"};

// Letter pairs that Oniguruma, in case-insensitive mode, also matches with a ligature or ß.
constexpr std::array<std::string_view, 5> kFoldedPairs = {"ff", "fi", "fl", "ss", "st"};

bool is_ascii_alnum(char32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

std::string literal_item(char32_t c) {
  return fmt::format("\\x{{{:x}}}", static_cast<uint32_t>(c));
}

std::string category_items(std::string_view category) {
  std::string items = fmt::format("\\p{{{}}}", category);
  for (const CategoryRange& range : added_categories())
    if (std::string_view(range.category).starts_with(category))
      items += literal_item(range.first) + "-" + literal_item(range.last);
  return items;
}

// The meaning of an escape: a literal, or the items of a character class.
struct Escape {
  std::optional<char32_t> literal;
  std::string items;
  bool negated = false;  // the complement of items
};

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  Result<std::string> run() {
    while (!done()) VALORA_CHECK(element());
    if (!caseless_.empty()) return unprocessable("a group is not closed");
    return std::move(out_);
  }

 private:
  bool done() const { return pos_ == in_.size(); }
  bool at(std::string_view text) const { return in_.substr(pos_).starts_with(text); }
  bool caseless() const { return !caseless_.empty() && caseless_.back(); }
  bool take(std::string_view text) {
    if (!at(text)) return false;
    pos_ += text.size();
    return true;
  }
  char32_t next_character() {
    const Utf8Step step = decode_utf8(in_.substr(pos_));
    pos_ += step.length;
    return step.code_point;
  }

  Status element() {
    if (at("(")) return open_group();
    if (at("[")) return character_class();
    if (at("\\")) return escape_outside();
    if (at("{")) return interval();
    if (at("^") || at("$"))
      return unprocessable(fmt::format("anchor \"{}\" is not supported", in_[pos_]));
    if (at(")")) return close_group();
    for (const std::string_view op : {"*", "+", "?", "|", "."}) {
      if (!take(op)) continue;
      out_ += op;
      previous_letter_ = 0;
      return {};
    }
    return literal(next_character());
  }

  Status literal(char32_t c) {
    if (caseless()) {
      if (c >= 0x80) return unprocessable("(?i:…) is supported around ASCII only");
      const std::string pair = {previous_letter_, static_cast<char>(c | 0x20)};
      if (std::ranges::find(kFoldedPairs, pair) != kFoldedPairs.end())
        return unprocessable("\"" + pair + "\" inside (?i:…) is not supported");
      previous_letter_ = static_cast<char>(c | 0x20);
    }
    out_ += literal_item(c);
    return {};
  }

  Status open_group() {
    previous_letter_ = 0;
    if (at("(?")) {
      const auto opener =
          std::ranges::find_if(kGroupOpeners, [&](std::string_view o) { return at(o); });
      if (opener == kGroupOpeners.end())
        return unprocessable(fmt::format("group \"{}\" is not supported", in_.substr(pos_, 4)));
      pos_ += opener->size();
      out_ += *opener;
      caseless_.push_back(caseless() || *opener == "(?i:");
      return {};
    }
    ++pos_;
    out_ += "(?:";  // capturing is not needed
    caseless_.push_back(caseless());
    return {};
  }

  Status close_group() {
    if (caseless_.empty()) return unprocessable("\")\" without a group");
    caseless_.pop_back();
    previous_letter_ = 0;
    ++pos_;
    out_ += ')';
    return {};
  }

  // {n}, {n,} and {n,m}. Oniguruma reads {,n}, {n}? and {n,m}+ differently.
  Status interval() {
    const size_t end = in_.find('}', pos_);
    const std::string_view body = end == in_.npos ? "" : in_.substr(pos_ + 1, end - pos_ - 1);
    const bool plain =
        !body.empty() && body[0] != ',' && std::ranges::count(body, ',') <= 1 &&
        std::ranges::all_of(body, [](char c) { return c == ',' || (c >= '0' && c <= '9'); });
    if (!plain) return unprocessable("\"{\" is supported in {n}, {n,} and {n,m} only");
    pos_ = end + 1;
    if (at("+") || (at("?") && body.find(',') == body.npos))
      return unprocessable(
          fmt::format("quantifier \"{{{}}}{}\" is not supported", body, in_[pos_]));
    previous_letter_ = 0;
    out_ += fmt::format("{{{}}}", body);
    return {};
  }

  Status escape_outside() {
    VALORA_TRY(escape, read_escape());
    if (escape.literal) return literal(*escape.literal);
    VALORA_CHECK(refuse_in_caseless());
    out_ += (escape.negated ? "[^" : "[") + escape.items + "]";
    return {};
  }

  Status refuse_in_caseless() const {
    if (caseless()) return unprocessable("character sets inside (?i:…) are not supported");
    return {};
  }

  Result<Escape> read_escape() {
    ++pos_;
    if (done()) return unprocessable("the pattern ends in \"\\\"");
    if (take("s")) return Escape{{}, std::string(kSpaceItems)};
    if (take("S")) return Escape{{}, std::string(kNotSpaceItems)};
    if (take("d")) return Escape{{}, category_items("Nd")};
    if (take("p{")) return read_category(false);
    if (take("P{")) return read_category(true);
    if (take("x{")) return read_code_point(in_.find('}', pos_), 1);
    if (take("u")) return read_code_point(std::min(pos_ + 4, in_.size()), 0);
    if (take("x")) return read_byte();
    constexpr std::string_view kNames = "rntfvae", kValues = "\r\n\t\f\v\a\x1B";
    const size_t index = kNames.find(in_[pos_]);
    if (index != kNames.npos) {
      ++pos_;
      return Escape{static_cast<char32_t>(kValues[index])};
    }
    const char32_t c = next_character();
    if (c >= 0x80 || is_ascii_alnum(c)) {
      std::string name = "\\";
      append_utf8(name, c);
      return unprocessable("\"" + name + "\" is not supported");
    }
    return Escape{c};
  }

  Result<Escape> read_category(bool negated) {
    const size_t end = in_.find('}', pos_);
    const std::string_view name = in_.substr(pos_, end == in_.npos ? end : end - pos_);
    if (end == in_.npos || std::ranges::find(kCategories, name) == kCategories.end())
      return unprocessable(fmt::format("property \"{}\" is not supported", name.substr(0, 32)));
    pos_ = end + 1;
    return Escape{{}, category_items(name), negated};
  }

  Result<Escape> read_byte() {
    VALORA_TRY(escape, read_code_point(std::min(pos_ + 2, in_.size()), 0));
    if (*escape.literal >= 0x80)
      return unprocessable("\"\\x\" of a non-ASCII byte is not supported");
    return escape;
  }

  // Reads hexadecimal digits up to `end`, then `closing` more bytes.
  Result<Escape> read_code_point(size_t end, size_t closing) {
    char32_t value = 0;
    const size_t digits = end == in_.npos ? 0 : end - pos_;
    if (digits == 0 || digits > 6) return unprocessable("a hexadecimal escape is malformed");
    for (; pos_ < end; ++pos_) {
      const char c = in_[pos_];
      const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (!letter && !(c >= '0' && c <= '9'))
        return unprocessable("a hexadecimal escape is malformed");
      value = value * 16 + static_cast<char32_t>(letter ? (c | 0x20) - 'a' + 10 : c - '0');
    }
    pos_ += closing;
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
      return unprocessable("a hexadecimal escape is not a character");
    return Escape{value};
  }

  Status character_class() {
    ++pos_;
    const bool negated = take("^");
    if (negated) VALORA_CHECK(refuse_in_caseless());
    if (at("]")) return unprocessable("a character class begins with \"]\"");
    std::string items;
    while (!at("]")) {
      if (done()) return unprocessable("a character class is not closed");
      VALORA_CHECK(class_item(items));
    }
    ++pos_;
    previous_letter_ = 0;
    out_ += (negated ? "[^" : "[") + items + "]";
    return {};
  }

  Status class_item(std::string& items) {
    if (at("[") || at("&&")) return unprocessable("nested character classes are not supported");
    VALORA_TRY(first, class_atom());
    if (!first.literal) {
      if (first.negated)
        return unprocessable("\"\\P{…}\" inside a character class is not supported");
      VALORA_CHECK(refuse_in_caseless());
      items += first.items;
      return {};
    }
    items += literal_item(*first.literal);
    if (!at("-") || in_.substr(pos_ + 1).starts_with("]")) return {};
    ++pos_;
    if (at("[") || done()) return unprocessable("a range in a character class is malformed");
    VALORA_TRY(last, class_atom());
    if (!last.literal || *last.literal < *first.literal)
      return unprocessable("a range in a character class is malformed");
    items += "-" + literal_item(*last.literal);
    return {};
  }

  Result<Escape> class_atom() {
    if (at("\\")) return read_escape();
    const char32_t c = next_character();
    if (caseless() && c >= 0x80) return unprocessable("(?i:…) is supported around ASCII only");
    return Escape{c};
  }

  std::string_view in_;
  size_t pos_ = 0;
  std::string out_;
  std::vector<bool> caseless_;  // per open group
  char previous_letter_ = 0;    // the preceding literal, inside (?i:…)
};

}  // namespace

Result<std::string> translate_regex(std::string_view pattern) { return Translator(pattern).run(); }

std::string literal_regex(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    out += literal_item(step.code_point);
    text.remove_prefix(step.length);
  }
  return out;
}

}  // namespace valora::text
