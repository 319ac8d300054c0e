// Python's string methods on UTF-8. Positions and lengths count code points.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/unicode.h"
#include "jinja/values/value.h"

namespace valora::jinja {

bool is_space(char32_t code_point);  // str.isspace()
int64_t code_points(std::string_view text);
// The byte offset of code point `index`; the end for larger indices.
size_t byte_offset(std::string_view text, int64_t index);

template <typename Visit>
void each_code_point(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    visit(step.code_point, text.substr(0, step.length));
    text.remove_prefix(step.length);
  }
}

enum class Side : uint8_t { kLeft, kRight, kBoth };
// Strips white space if `chars` is absent.
std::string_view strip(std::string_view text, Side side,
                       std::optional<std::string_view> chars = {});
// Splits at white space if no separator is given. A separator must not be empty. A negative limit
// means no limit.
std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator, int64_t limit);
std::vector<std::string_view> split_from_right(std::string_view text,
                                               std::optional<std::string_view> separator,
                                               int64_t limit);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
// The number of occurrences of `part` in `text`, at most `limit` unless that is negative. An empty
// part occurs between all characters.
int64_t count_of(std::string_view text, std::string_view part, int64_t limit = -1);
std::string replace(std::string_view text, std::string_view from, std::string_view to,
                    int64_t limit);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);         // str.title()
std::string title_filter(std::string_view text);  // jinja2's filter, with fewer word boundaries
std::string swap_case(std::string_view text);
bool is_upper(std::string_view text);
bool is_lower(std::string_view text);
// isalpha, isdigit, isalnum, isdecimal, isnumeric, isspace, isascii, istitle or isidentifier, by
// name.
std::optional<bool> string_predicate(std::string_view name, std::string_view text);

// The filter `escape`: a value's text, with HTML's special characters escaped, marked as safe. Text
// that is already marked is not escaped again.
Result<Value> escaped(Budget& budget, const Value& value);

}  // namespace valora::jinja
