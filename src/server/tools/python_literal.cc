#include "server/tools/parsers.h"

#include <cctype>
#include <utility>

#include "base/text/unicode.h"

namespace valora::server {
namespace {

constexpr int kMaxLiteralDepth = 64;

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_name(char c) {
  return begins_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
}

// Functions return false or nullopt if the text does not match.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<PythonCall> call() {
    PythonCall out{name(), OrderedJson::object()};
    if (out.name.empty() || !take('(')) return {};
    if (!take(')')) {
      do {
        if (take(')')) return at_end() ? std::optional(std::move(out)) : std::nullopt;
        const std::string key = name();
        if (key.empty() || !take('=')) return {};
        auto value = literal(0);
        if (!value) return {};
        out.arguments[key] = std::move(*value);
      } while (take(','));
      if (!take(')')) return {};
    }
    if (!at_end()) return {};
    return out;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::string name() {
    skip_space();
    const size_t begin = at_;
    if (at_ < text_.size() && begins_name(text_[at_]))
      while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::optional<OrderedJson> literal(int depth) {
    if (depth > kMaxLiteralDepth) return {};
    switch (const char c = peek()) {
      case '[': return list(']', depth);
      case '(': return list(')', depth);
      case '{': return dict(depth);
      case '\'':
      case '"': return string();
      default: return begins_name(c) ? word() : number();
    }
  }

  std::optional<OrderedJson> word() {
    const std::string text = name();
    if (text == "True" || text == "true") return OrderedJson(true);
    if (text == "False" || text == "false") return OrderedJson(false);
    if (text == "None" || text == "null") return OrderedJson(nullptr);
    return {};
  }

  std::optional<OrderedJson> number() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '.' || text_[at_] == '+' || text_[at_] == '-'))
      ++at_;
    OrderedJson value = OrderedJson::parse(text_.substr(begin, at_ - begin), nullptr, false);
    if (!value.is_number()) return {};
    return value;
  }

  std::optional<OrderedJson> list(char close, int depth) {
    ++at_;
    OrderedJson out = OrderedJson::array();
    while (!take(close)) {
      if (!out.empty() && !take(',')) return {};
      if (take(close)) break;
      auto item = literal(depth + 1);
      if (!item) return {};
      out.push_back(std::move(*item));
    }
    return out;
  }

  std::optional<OrderedJson> dict(int depth) {
    ++at_;
    OrderedJson out = OrderedJson::object();
    while (!take('}')) {
      if (!out.empty() && !take(',')) return {};
      if (take('}')) break;
      if (peek() != '\'' && peek() != '"') return {};
      const auto key = string();
      if (!key || !take(':')) return {};
      auto value = literal(depth + 1);
      if (!value) return {};
      out[key->get<std::string>()] = std::move(*value);
    }
    return out;
  }

  std::optional<OrderedJson> string() {
    const char quote = text_[at_++];
    std::string out;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == quote) {
        ++at_;
        return OrderedJson(to_valid_utf8(out));
      }
      if (c != '\\') {
        out += c;
      } else if (!escape(out)) {
        return {};
      }
    }
    return {};
  }

  // Expects at_ at the backslash and leaves it at the escape's last character.
  bool escape(std::string& out) {
    if (++at_ == text_.size()) return false;
    const char c = text_[at_];
    constexpr std::string_view kFrom = "ntrbf0av\\'\"", kTo("\n\t\r\b\f\0\a\v\\'\"", 11);
    if (const size_t known = kFrom.find(c); known != std::string_view::npos) {
      out += kTo[known];
      return true;
    }
    const int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) {
      out += '\\';
      out += c;
      return true;
    }
    char32_t code = 0;
    for (int i = 0; i < digits; ++i) {
      if (++at_ == text_.size() || std::isxdigit(static_cast<unsigned char>(text_[at_])) == 0)
        return false;
      const char d = text_[at_];
      code = code * 16 + static_cast<char32_t>(d <= '9' ? d - '0' : (d | 32) - 'a' + 10);
    }
    append_utf8(out, code > 0x10FFFF ? 0xFFFD : code);
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<PythonCall> parse_python_call(std::string_view text) { return Reader(text).call(); }

}  // namespace valora::server
