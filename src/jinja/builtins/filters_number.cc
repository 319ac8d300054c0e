#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "jinja/builtins/arguments.h"
#include "jinja/builtins/builtins.h"
#include "jinja/values/text_ops.h"

namespace valora::jinja {
namespace {

// A number's text without underscores between digits; nullopt if an underscore is elsewhere.
std::optional<std::string> plain_digits(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const auto digit = [&](size_t at) {
      return at < text.size() && std::isxdigit(static_cast<unsigned char>(text[at]));
    };
    if (i == 0 || !digit(i - 1) || !digit(i + 1)) return std::nullopt;
  }
  return out;
}

// int(text, base); nullopt if the text is not an integer.
Result<std::optional<int64_t>> parse_integer(std::string_view text, int64_t base) {
  auto digits = plain_digits(strip(text, Side::kBoth));
  if (!digits || (base != 0 && (base < 2 || base > 36))) return std::optional<int64_t>{};
  std::string_view rest = *digits;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.size() > 2 && rest[0] == '0') {
    const char letter = static_cast<char>(rest[1] | 0x20);
    const int64_t named = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (named != 0 && (base == named || base == 0)) {
      base = named;
      rest.remove_prefix(2);
    }
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value,
                                            base == 0 ? 10 : static_cast<int>(base));
  if (rest.empty() || end != rest.data() + rest.size() || error == std::errc::invalid_argument)
    return std::optional<int64_t>{};
  if (error != std::errc() || value > static_cast<uint64_t>(INT64_MAX))
    return fault("an integer does not fit in 64 bits");
  return std::optional(negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value));
}

// float(text)
std::optional<double> parse_float(std::string_view text) {
  const auto digits = plain_digits(strip(text, Side::kBoth));
  if (!digits || digits->empty() || digits->find_first_of("xXpP()") != std::string::npos)
    return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(digits->c_str(), &end);
  if (end != digits->c_str() + digits->size()) return std::nullopt;
  return value;
}

std::optional<double> float_of(const Value& value) {
  if (value.is_string()) return parse_float(value.text());
  return as_number(value);
}

Result<Value> to_int(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("int", {"default", "base"}, 0, std::move(args)));
  if (subject.is_undefined()) return undefined_fault(subject);
  if (const auto integer = as_integer(subject)) return Value(*integer);
  if (subject.as<Large>()) return subject;
  if (subject.is_string()) {
    VALORA_CHECK(runtime.budget.look_at(subject.text().size()));
    VALORA_TRY(base, integer_or(bound[1], 10, "the base"));
    VALORA_TRY(parsed, parse_integer(subject.text(), base));
    if (parsed) return Value(*parsed);
  }
  const auto number = float_of(subject);
  if (!number || std::isnan(*number) || (std::isinf(*number) && subject.is_string()))
    return bound[0].value_or(int64_t{0});
  if (std::isinf(*number)) return fault("cannot convert float infinity to integer");
  if (std::abs(*number) >= 9.2e18) return fault("an integer does not fit in 64 bits");
  return Value(static_cast<int64_t>(*number));
}

Result<Value> to_float(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("float", {"default"}, 0, std::move(args)));
  if (subject.is_undefined()) return undefined_fault(subject);
  if (subject.is_string()) VALORA_CHECK(runtime.budget.look_at(subject.text().size()));
  if (const auto number = float_of(subject)) return Value(*number);
  return bound[0].value_or(0.0);
}

Result<Value> absolute(Runtime&, const Value& subject, CallArgs args) {
  VALORA_TRY(none, bind("abs", {}, 0, std::move(args)));
  if (const auto integer = as_integer(subject)) {
    if (*integer == INT64_MIN) return fault("an integer does not fit in 64 bits");
    return Value(std::abs(*integer));
  }
  if (subject.as<Large>()) return subject;
  if (const auto* number = subject.as<double>()) return Value(std::abs(*number));
  return fault("bad operand type for abs(): '" + std::string(type_name(subject)) + "'");
}

Result<Value> round(Runtime&, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("round", {"precision", "method"}, 0, std::move(args)));
  VALORA_TRY(precision, integer_or(bound[0], 0, "the precision"));
  VALORA_TRY(method, optional_string(bound[1], "the method"));
  const std::string_view how = method.value_or("common");
  if (how != "common" && how != "ceil" && how != "floor")
    return fault("method must be common, ceil or floor");
  const auto number = as_number(subject);
  if (!number)
    return fault("type " + std::string(type_name(subject)) + " doesn't define __round__ method");
  if (precision < 0 || precision > 300)
    return fault("a precision of " + std::to_string(precision) + " is not supported");
  if (how != "common") {
    const double scale = std::pow(10.0, static_cast<double>(precision));
    const double scaled = *number * scale;
    if (!std::isfinite(scaled)) return fault("cannot convert float infinity or NaN to integer");
    return Value((how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
  }
  if (const auto integer = as_integer(subject)) return Value(*integer);
  if (subject.as<Large>()) return subject;
  if (!std::isfinite(*number)) return subject;
  std::array<char, 1024> buffer;  // the exact value: ties round to the even decimal digit
  std::snprintf(buffer.data(), buffer.size(), "%.*f", static_cast<int>(precision), *number);
  return Value(std::strtod(buffer.data(), nullptr));
}

}  // namespace

FilterFunction number_filter(std::string_view name) {
  if (name == "int") return to_int;
  if (name == "float") return to_float;
  if (name == "abs") return absolute;
  if (name == "round") return round;
  return nullptr;
}

}  // namespace valora::jinja
