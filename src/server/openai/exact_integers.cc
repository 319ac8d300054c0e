#include "server/openai/exact_integers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/text/strings.h"

namespace valora::server {
namespace {

constexpr std::string_view kNumber = "+-.0123456789eE";

bool fits_64_bits(std::string_view number) {
  if (number.find_first_of(".eE") != number.npos) return true;  // a float
  int64_t negative = 0;
  uint64_t positive = 0;
  const char *begin = number.data(), *end = begin + number.size();
  const auto error = number.starts_with('-') ? std::from_chars(begin, end, negative).ec
                                             : std::from_chars(begin, end, positive).ec;
  return error == std::errc();
}

// Walks over valid JSON. visit(number, field) gets each number, and the name of the outermost
// object's field that it is in.
template <typename Visit>
Status each_number(std::string_view text, Visit visit) {
  int depth = 0;
  std::string_view field, last;  // last: the string before the current position
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      const size_t begin = ++i;
      while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
      last = text.substr(begin, i - begin);
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ':' && depth == 1) {
      field = last;
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      const size_t end = std::min(text.find_first_not_of(kNumber, i), text.size());
      VALORA_CHECK(visit(text.substr(i, end - i), field));
      i = end - 1;
    }
  }
  return {};
}

Error too_large(std::string_view number, const std::string& param) {
  return invalid(fmt::format("\"{}\" has the integer {}, which does not fit in 64 bits; send it as "
                             "a string",
                             param, shortened(number, 40)),
                 param);
}

}  // namespace

Status check_integers(std::string_view text, const std::string& param) {
  return each_number(text, [&](std::string_view number, std::string_view) {
    return fits_64_bits(number) ? Status() : too_large(number, param);
  });
}

Status check_integers_of(std::string_view body, std::initializer_list<std::string_view> fields) {
  return each_number(body, [&](std::string_view number, std::string_view field) {
    if (fits_64_bits(number) || std::ranges::find(fields, field) == fields.end()) return Status();
    return Status(too_large(number, std::string(field)));
  });
}

}  // namespace valora::server
