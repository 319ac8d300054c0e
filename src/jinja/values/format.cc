#include "jinja/values/format.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/text/unicode.h"

namespace valora::jinja {
namespace {

bool printable(char32_t c) {
  if (c == ' ') return true;
  const std::string_view category = general_category(c);
  return category[0] != 'C' && category[0] != 'Z';
}

std::string hex_escape(char32_t c) {
  std::array<char, 16> buffer;
  const char* form = c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x";
  std::snprintf(buffer.data(), buffer.size(), form, static_cast<unsigned>(c));
  return buffer.data();
}

class Printer {
 public:
  explicit Printer(Budget& budget) : budget_(budget) {}
  std::string out;

  Status print(const Value& value) {
    VALORA_CHECK(budget_.step());
    if (const auto* boolean = value.as<bool>()) return add(*boolean ? "True" : "False");
    if (const auto* integer = value.as<int64_t>()) return add(std::to_string(*integer));
    if (const auto* large = value.as<Large>()) return add(std::to_string(large->value));
    if (const auto* number = value.as<double>()) return add(float_text(*number));
    if (value.is_none()) return add("None");
    if (value.is_undefined()) return add("Undefined");
    if (const auto* string = value.as<StrPtr>()) {
      VALORA_CHECK(budget_.look_at((*string)->text.size()));
      return add((*string)->markup ? "Markup(" + string_repr((*string)->text) + ")"
                                   : string_repr((*string)->text));
    }
    if (const auto* sequence = value.as<SequencePtr>()) return print_sequence(**sequence);
    if (const auto* dict = value.as<DictPtr>()) return print_dict(**dict);
    return fault("a value of type '" + std::string(type_name(value)) +
                 "' has no fixed text to print");
  }

 private:
  Status add(std::string_view text) {
    if (out.size() + text.size() > kMaxStringBytes)
      return budget_.take_string(out.size() + text.size());
    out += text;
    return {};
  }

  Status print_sequence(const Sequence& sequence) {
    switch (sequence.kind) {
      case Sequence::Kind::kList: return print_items(sequence.items, "[", "]");
      case Sequence::Kind::kTuple:
        return print_items(sequence.items, "(", sequence.items.size() == 1 ? ",)" : ")");
      case Sequence::Kind::kKeys: return print_items(sequence.items, "dict_keys([", "])");
      case Sequence::Kind::kValues: return print_items(sequence.items, "dict_values([", "])");
      case Sequence::Kind::kItems: return print_items(sequence.items, "dict_items([", "])");
      case Sequence::Kind::kRange: {
        const std::string bounds =
            std::to_string(sequence.start) + ", " + std::to_string(sequence.stop);
        return add("range(" + bounds +
                   (sequence.step == 1 ? "" : ", " + std::to_string(sequence.step)) + ")");
      }
      case Sequence::Kind::kIterator: break;
    }
    return fault("an iterator has no fixed text to print; make a list of it first (|list)");
  }

  Status print_items(const std::vector<Value>& items, std::string_view open,
                     std::string_view close) {
    VALORA_CHECK(add(open));
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) VALORA_CHECK(add(", "));
      VALORA_CHECK(print(items[i]));
    }
    return add(close);
  }

  Status print_dict(const Dict& dict) {
    VALORA_CHECK(add("{"));
    bool first = true;
    for (const auto& [key, value] : dict.entries()) {
      if (!std::exchange(first, false)) VALORA_CHECK(add(", "));
      VALORA_CHECK(print(key));
      VALORA_CHECK(add(": "));
      VALORA_CHECK(print(value));
    }
    return add("}");
  }

  Budget& budget_;
};

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  std::string_view scientific(buffer.data(), static_cast<size_t>(end - buffer.data()));
  std::string sign;
  if (scientific.starts_with('-')) {
    sign = "-";
    scientific.remove_prefix(1);
  }
  const size_t e = scientific.find('e');
  int exponent = 0;
  const std::string_view power = scientific.substr(e + (scientific[e + 1] == '+' ? 2 : 1));
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  std::string digits(1, scientific[0]);
  if (e > 1) digits += scientific.substr(2, e - 2);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    if (count > 1) digits.insert(1, ".");
    const std::string size = std::to_string(std::abs(exponent));
    return sign + digits + (exponent < 0 ? "e-" : "e+") + (size.size() < 2 ? "0" + size : size);
  }
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<size_t>(-exponent) - 1, '0') + digits;
  if (count <= exponent + 1)
    return sign + digits +
           std::string(static_cast<size_t>(exponent) + 1 - static_cast<size_t>(count), '0') + ".0";
  return sign + digits.insert(static_cast<size_t>(exponent) + 1, ".");
}

std::string string_repr(std::string_view text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    const char32_t c = step.code_point;
    if (c == static_cast<char32_t>(quote) || c == '\\')
      (out += '\\') += static_cast<char>(c);
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (printable(c))
      out += text.substr(0, step.length);
    else
      out += hex_escape(c);
    text.remove_prefix(step.length);
  }
  return out + quote;
}

Result<std::string> to_text(Budget& budget, const Value& value) {
  if (value.is_string()) {
    VALORA_CHECK(budget.look_at(value.text().size()));
    return value.text();
  }
  if (value.is_undefined()) return std::string();
  return to_repr(budget, value);
}

Result<std::string> to_repr(Budget& budget, const Value& value) {
  Printer printer(budget);
  VALORA_CHECK(printer.print(value));
  return std::move(printer.out);
}

}  // namespace valora::jinja
