// json.dumps() of values.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/text/unicode.h"
#include "jinja/values/format.h"
#include "jinja/values/operators.h"

namespace valora::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(Budget& budget, const JsonStyle& style) : budget_(budget), style_(style) {}
  std::string out;

  Status write(const Value& value, int level = 0) {
    VALORA_CHECK(budget_.step());
    if (value.is_string()) return write_string(value.text());
    const auto* sequence = value.as<SequencePtr>();
    if (sequence &&
        ((*sequence)->kind == Sequence::Kind::kList || (*sequence)->kind == Sequence::Kind::kTuple))
      return write_list((*sequence)->items, level);
    if (const auto* dict = value.as<DictPtr>()) return write_dict(**dict, level);
    VALORA_TRY(text, scalar(value));
    return add(text);
  }

 private:
  Status add(std::string_view text) {
    if (out.size() + text.size() > kMaxStringBytes)
      return budget_.take_string(out.size() + text.size());
    out += text;
    return {};
  }

  static Result<std::string> scalar(const Value& value) {
    if (value.is_none()) return std::string("null");
    if (const auto* boolean = value.as<bool>()) return std::string(*boolean ? "true" : "false");
    if (const auto* integer = value.as<int64_t>()) return std::to_string(*integer);
    if (const auto* large = value.as<Large>()) return std::to_string(large->value);
    if (const auto* number = value.as<double>()) {
      if (std::isnan(*number)) return std::string("NaN");
      if (std::isinf(*number)) return std::string(*number < 0 ? "-Infinity" : "Infinity");
      return float_text(*number);
    }
    return fault("Object of type " + std::string(type_name(value)) + " is not JSON serializable");
  }

  Status write_string(std::string_view text) {
    VALORA_CHECK(budget_.look_at(text.size()));
    VALORA_CHECK(add("\""));
    while (!text.empty()) {
      const Utf8Step step = decode_utf8(text);
      VALORA_CHECK(write_character(step.code_point, text.substr(0, step.length)));
      text.remove_prefix(step.length);
    }
    return add("\"");
  }

  Status write_character(char32_t c, std::string_view bytes) {
    static constexpr std::string_view kShort = "\"\"\\\\\nn\rr\tt\bb\ff";
    for (size_t i = 0; i < kShort.size(); i += 2)
      if (c == static_cast<char32_t>(kShort[i])) return add(std::string("\\") + kShort[i + 1]);
    if (c >= 0x20 && (c < 0x7F || !style_.ensure_ascii)) return add(bytes);
    if (c == 0x7F) return add(bytes);
    if (c < 0x10000) return add(escape(c));
    return add(escape(0xD800 + ((c - 0x10000) >> 10)) + escape(0xDC00 + ((c - 0x10000) & 0x3FF)));
  }

  static std::string escape(char32_t unit) {
    std::array<char, 8> buffer;
    std::snprintf(buffer.data(), buffer.size(), "\\u%04x", static_cast<unsigned>(unit) & 0xFFFF);
    return buffer.data();
  }

  Status new_line(int level) {
    if (!style_.indent) return {};
    VALORA_CHECK(add("\n"));
    for (int i = 0; i < level; ++i) VALORA_CHECK(add(*style_.indent));
    return {};
  }

  Status write_list(const std::vector<Value>& items, int level) {
    if (items.empty()) return add("[]");
    VALORA_CHECK(add("["));
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) VALORA_CHECK(add(style_.item_separator));
      VALORA_CHECK(new_line(level + 1));
      VALORA_CHECK(write(items[i], level + 1));
    }
    VALORA_CHECK(new_line(level));
    return add("]");
  }

  Status write_dict(const Dict& dict, int level) {
    if (dict.entries().empty()) return add("{}");
    std::vector<const Dict::Entry*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) VALORA_CHECK(sort(entries));
    VALORA_CHECK(add("{"));
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) VALORA_CHECK(add(style_.item_separator));
      VALORA_CHECK(new_line(level + 1));
      VALORA_CHECK(write_key(entries[i]->first));
      VALORA_CHECK(add(style_.key_separator));
      VALORA_CHECK(write(entries[i]->second, level + 1));
    }
    VALORA_CHECK(new_line(level));
    return add("}");
  }

  Status write_key(const Value& key) {
    if (key.is_string()) return write_string(key.text());
    if (!key.is_none() && !as_number(key))
      return fault("keys must be str, int, float, bool or None, not " +
                   std::string(type_name(key)));
    VALORA_TRY(text, scalar(key));
    return write_string(text);
  }

  Status sort(std::vector<const Dict::Entry*>& entries) {
    Status status;
    std::ranges::stable_sort(entries, [&](const auto* a, const auto* b) {
      if (!status.ok()) return false;
      const auto sign = order(budget_, a->first, b->first);
      if (!sign.ok()) status = sign.error();
      return sign.ok() && *sign < 0;
    });
    return status;
  }

  Budget& budget_;
  const JsonStyle& style_;
};

}  // namespace

Result<std::string> to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  JsonWriter writer(budget, style);
  VALORA_CHECK(writer.write(value));
  return std::move(writer.out);
}

}  // namespace valora::jinja
