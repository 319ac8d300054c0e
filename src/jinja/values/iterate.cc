#include "jinja/values/iterate.h"

#include "base/text/unicode.h"

namespace valora::jinja {

bool iterable(const Value& value) {
  return value.is_string() || value.is_undefined() || value.as<SequencePtr>() ||
         value.as<DictPtr>() || value.as<LoopPtr>();
}

Result<Iterator> Iterator::over(const Value& value) {
  if (value.as<LoopPtr>()) return fault("iterating over the loop variable itself is not supported");
  if (!iterable(value))
    return fault("'" + std::string(type_name(value)) + "' object is not iterable");
  return Iterator(value);
}

Result<std::optional<Value>> Iterator::next(Budget& budget) {
  VALORA_CHECK(budget.step());
  if (value_.is_string()) {
    const std::string_view rest = std::string_view(value_.text()).substr(position_);
    if (rest.empty()) return std::optional<Value>{};
    const size_t length = decode_utf8(rest).length;
    position_ += length;
    VALORA_TRY(character, make_string(budget, std::string(rest.substr(0, length))));
    return std::optional<Value>(std::move(character));
  }
  if (const auto* dict = value_.as<DictPtr>()) {
    if (position_ == (*dict)->entries().size()) return std::optional<Value>{};
    return std::optional<Value>((*dict)->entries()[position_++].first);
  }
  const auto* sequence = value_.as<SequencePtr>();
  if (!sequence) return std::optional<Value>{};
  size_t& position = (*sequence)->has_length() ? position_ : (*sequence)->consumed;
  if (position == (*sequence)->items.size()) return std::optional<Value>{};
  return std::optional<Value>((*sequence)->items[position++]);
}

Result<std::vector<Value>> items_of(Budget& budget, const Value& value) {
  VALORA_TRY(iterator, Iterator::over(value));
  std::vector<Value> items;
  for (;;) {
    VALORA_TRY(next, iterator.next(budget));
    if (!next) break;
    VALORA_CHECK(budget.take(sizeof(Value)));
    items.push_back(std::move(*next));
  }
  return items;
}

}  // namespace valora::jinja
