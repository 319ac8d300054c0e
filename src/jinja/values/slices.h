// Strings and lists derived from others. Their size is checked before memory is allocated.
#pragma once

#include <span>

#include "jinja/values/value.h"

namespace valora::jinja {

// text[start:stop:step] or list[start:stop:step]. A missing bound is none.
Result<Value> slice(Budget& budget, const Value& value, const Value& start, const Value& stop,
                    const Value& step);
Result<Value> replaced(Budget& budget, std::string_view text, std::string_view from,
                       std::string_view to, int64_t limit);
Result<Value> joined(Budget& budget, std::span<const std::string_view> parts,
                     std::string_view separator);
// The text with `fill` repeated `left` times before and `right` times after it.
Result<Value> padded(Budget& budget, std::string_view text, std::string_view fill, int64_t left,
                     int64_t right);
// A string or list repeated `times` times.
Result<Value> repeated(Budget& budget, const Value& value, int64_t times);

}  // namespace valora::jinja
