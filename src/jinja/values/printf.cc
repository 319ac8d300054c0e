#include "jinja/values/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "jinja/builtins/arguments.h"
#include "jinja/values/text_ops.h"

namespace valora::jinja {
namespace {

constexpr int kMaxWidth = 1000;  // for one field

struct Field {
  bool left = false, plus = false, space = false, zero = false, alternate = false;
  int width = 0, precision = -1;
  char type = 's';
};

class PercentFormat {
 public:
  PercentFormat(Budget& budget, std::string_view form, const Value& values)
      : budget_(budget), rest_(form), values_(values) {
    if (const auto* tuple = values.as<SequencePtr>();
        tuple && (*tuple)->kind == Sequence::Kind::kTuple)
      items_ = &(*tuple)->items;
  }

  Result<Value> run() {
    for (size_t at; (at = rest_.find('%')) != rest_.npos;) {
      out_ += rest_.substr(0, at);
      rest_.remove_prefix(at + 1);
      VALORA_CHECK(field());
      if (out_.size() > kMaxStringBytes) VALORA_CHECK(budget_.take_string(out_.size()));
    }
    out_ += rest_;
    if (items_ ? next_ < items_->size()
               : next_ == 0 && !values_.as<DictPtr>() && !values_.as<SequencePtr>())
      return fault("not all arguments converted during string formatting");
    return make_string(budget_, std::move(out_));
  }

 private:
  Result<Value> next_value() {
    if (items_ ? next_ >= items_->size() : next_ > 0)
      return fault("not enough arguments for format string");
    return items_ ? (*items_)[next_++] : (++next_, values_);
  }

  Result<int> number() {
    int value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (end == rest_.data()) return 0;
    if (error != std::errc() || value > kMaxWidth || value < 0)
      return fault("a format's width or precision of more than " + std::to_string(kMaxWidth) +
                   " is not supported");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  Result<Field> read_field() {
    Field field;
    for (bool flag = true; flag && !rest_.empty();) {
      switch (rest_[0]) {
        case '-': field.left = true; break;
        case '+': field.plus = true; break;
        case ' ': field.space = true; break;
        case '0': field.zero = true; break;
        case '#': field.alternate = true; break;
        default: flag = false;
      }
      if (flag) rest_.remove_prefix(1);
    }
    VALORA_TRY(width, number());
    field.width = width;
    if (rest_.starts_with('.')) {
      rest_.remove_prefix(1);
      VALORA_TRY(precision, number());
      field.precision = precision;
    }
    if (rest_.empty()) return fault("incomplete format");
    field.type = rest_[0];
    rest_.remove_prefix(1);
    return field;
  }

  Status field() {
    std::optional<Value> named;
    if (rest_.starts_with('(')) {
      const size_t close = rest_.find(')');
      const auto* dict = values_.as<DictPtr>();
      if (!dict) return fault("format requires a mapping");
      if (close == rest_.npos) return fault("incomplete format key");
      const Value* found = (*dict)->find(rest_.substr(1, close - 1));
      if (!found) return fault("KeyError: '" + std::string(rest_.substr(1, close - 1)) + "'");
      named = *found;
      rest_.remove_prefix(close + 1);
    }
    VALORA_TRY(field, read_field());
    if (field.type == '%') {
      out_ += '%';
      return {};
    }
    if (!named) {
      VALORA_TRY(value, next_value());
      named = std::move(value);
    }
    return write(field, *named);
  }

  Status write(const Field& field, const Value& value) {
    switch (field.type) {
      case 's':
      case 'r': {
        VALORA_TRY(text, field.type == 's' ? to_text(budget_, value) : to_repr(budget_, value));
        if (field.precision >= 0) text.resize(byte_offset(text, field.precision));
        return pad(field, text);
      }
      case 'd':
      case 'i':
      case 'u': return write_integer(field, value, 'd');
      case 'x':
      case 'X':
      case 'o': return write_integer(field, value, field.type);
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G': return write_float(field, value);
      default: return fault("the format '%" + std::string(1, field.type) + "' is not supported");
    }
  }

  Status write_integer(const Field& field, const Value& value, char type) {
    auto integer = as_integer(value);
    if (const auto* number = value.as<double>(); number && type == 'd') {
      if (!(std::abs(*number) < 9.0e18)) return fault("an integer does not fit in 64 bits");
      integer = static_cast<int64_t>(*number);
    }
    if (value.is_undefined()) return undefined_fault(value);
    const auto* large = value.as<Large>();
    if ((!integer && !large) || field.alternate || field.precision >= 0)
      return fault("%" + std::string(1, field.type) + " format: an integer is required, not " +
                   std::string(type_name(value)));
    std::array<char, 32> digits;
    const bool negative = integer && *integer < 0;
    const uint64_t size = large      ? large->value
                          : negative ? 0 - static_cast<uint64_t>(*integer)
                                     : static_cast<uint64_t>(*integer);
    std::snprintf(digits.data(), digits.size(),
                  type == 'd'   ? "%llu"
                  : type == 'x' ? "%llx"
                  : type == 'X' ? "%llX"
                                : "%llo",
                  static_cast<unsigned long long>(size));
    return pad_number(field, negative, digits.data());
  }

  Status write_float(const Field& field, const Value& value) {
    const auto number = as_number(value);
    if (value.is_undefined()) return undefined_fault(value);
    if (!number || field.alternate)
      return fault("must be real number, not " + std::string(type_name(value)));
    const char form[] = {'%', '.', '*', field.type, '\0'};
    std::array<char, 2048> digits;
    std::snprintf(digits.data(), digits.size(), form, field.precision < 0 ? 6 : field.precision,
                  std::abs(*number));
    return pad_number(field, std::signbit(*number), digits.data());
  }

  Status pad_number(const Field& field, bool negative, std::string digits) {
    const std::string sign = negative ? "-" : field.plus ? "+" : field.space ? " " : "";
    if (field.zero && !field.left && static_cast<int>(sign.size() + digits.size()) < field.width)
      digits.insert(0, static_cast<size_t>(field.width) - sign.size() - digits.size(), '0');
    return pad(field, sign + digits);
  }

  Status pad(const Field& field, const std::string& text) {
    const auto padding = static_cast<size_t>(std::max<int64_t>(field.width - code_points(text), 0));
    if (!field.left) out_.append(padding, ' ');
    out_ += text;
    if (field.left) out_.append(padding, ' ');
    return {};
  }

  Budget& budget_;
  std::string_view rest_;
  const Value& values_;
  const std::vector<Value>* items_ = nullptr;
  size_t next_ = 0;
  std::string out_;
};

struct Numbering {
  size_t next = 0;
  bool automatic = false, manual = false;
};

// The value for {name}, {0} or {}.
Result<Value> brace_value(std::string_view name, const CallArgs& args, Numbering& numbering) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool is_index = !name.empty() && error == std::errc() && end == name.data() + name.size();
  if (name.empty() || is_index) {
    (name.empty() ? numbering.automatic : numbering.manual) = true;
    if (numbering.automatic && numbering.manual)
      return fault("format() cannot number fields both by itself and by hand");
    const size_t at = name.empty() ? numbering.next++ : index;
    if (at >= args.positional.size())
      return fault("Replacement index " + std::to_string(at) +
                   " out of range for positional args tuple");
    return args.positional[at];
  }
  for (const auto& [key, value] : args.named)
    if (key == name) return value;
  if (name.find_first_of(".[") != name.npos)
    return fault("format() with attributes or subscripts is not supported");
  return fault("KeyError: '" + std::string(name) + "'");
}

}  // namespace

Result<Value> format_percent(Budget& budget, std::string_view form, const Value& values) {
  VALORA_CHECK(budget.look_at(form.size()));
  return PercentFormat(budget, form, values).run();
}

Result<Value> format_braces(Budget& budget, std::string_view form, const CallArgs& args) {
  std::string out;
  Numbering numbering;
  for (size_t i = 0; i < form.size(); ++i) {
    const char c = form[i];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (i + 1 < form.size() && form[i + 1] == c) {
      out += form[i++];
      continue;
    }
    const size_t close = form.find('}', i);
    if (c == '}') return fault("Single '}' encountered in format string");
    if (close == form.npos) return fault("Single '{' encountered in format string");
    std::string_view name = form.substr(i + 1, close - i - 1);
    if (name.find_first_of(":{") != name.npos)
      return fault("format() with a format after ':' is not supported");
    const size_t mark = name.find('!');
    const std::string_view conversion = mark == name.npos ? "" : name.substr(mark);
    if (!conversion.empty() && conversion != "!r" && conversion != "!s")
      return fault("a conversion of format() is not supported");
    VALORA_TRY(value, brace_value(name.substr(0, mark), args, numbering));
    VALORA_TRY(text, conversion == "!r" ? to_repr(budget, value) : to_text(budget, value));
    out += text;
    if (out.size() > kMaxStringBytes) VALORA_CHECK(budget.take_string(out.size()));
    i = close;
  }
  return make_string(budget, std::move(out));
}

}  // namespace valora::jinja
