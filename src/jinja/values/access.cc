#include "jinja/values/access.h"

#include <algorithm>
#include <charconv>

#include "base/text/strings.h"
#include "base/text/unicode.h"
#include "jinja/builtins/arguments.h"
#include "jinja/builtins/builtins.h"
#include "jinja/loop.h"
#include "jinja/values/format.h"
#include "jinja/values/slices.h"
#include "jinja/values/text_ops.h"

namespace valora::jinja {
namespace {

std::string described(const Value& object) {
  if (object.is_none()) return "None";
  return std::string(type_name(object)) + " object";
}

Value no_attribute(const Value& object, const std::string& name) {
  const std::string what = described(object);
  return Value::undefined((object.is_none() ? what : "'" + what + "'") + " has no attribute '" +
                          shortened(name, 80) + "'");
}

// Attributes that Python defines.
Result<std::optional<Value>> own_attribute(Runtime& runtime, const Value& object,
                                           const std::string& name) {
  if (object.is_undefined()) return undefined_fault(object);
  if (name.starts_with("__") && name.ends_with("__"))
    return std::optional(Value::undefined("access to attribute '" + shortened(name, 80) + "' of '" +
                                          std::string(type_name(object)) + "' object is unsafe."));
  if (const auto* space = object.as<NamespacePtr>()) {
    VALORA_CHECK(runtime.budget.step(1 + (*space)->attributes.size() / 16));
    const Value* found = (*space)->find(name);
    return found ? std::optional(*found) : std::nullopt;
  }
  if (const auto* loop = object.as<LoopPtr>()) return (*loop)->attribute(runtime.budget, name);
  return method_of(object, name);
}

std::optional<Value> item_of_dict(const Value& object, const Value& key) {
  const auto* dict = object.as<DictPtr>();
  if (!dict || !hashable(key)) return std::nullopt;
  const Value* found = (*dict)->find(key);
  return found ? std::optional(*found) : std::nullopt;
}

// nullopt if Python would raise a TypeError or LookupError.
Result<std::optional<Value>> item_at(Budget& budget, const Value& object, const Value& key) {
  if (key.is_string()) VALORA_CHECK(budget.look_at(key.text().size()));
  if (auto found = item_of_dict(object, key)) return found;
  const auto index = as_integer(key);
  const auto* sequence = object.as<SequencePtr>();
  if (!index || !(object.is_string() || (sequence && (*sequence)->indexable())))
    return std::optional<Value>{};
  VALORA_TRY(length, length_of(object));
  const int64_t at = *index < 0 ? *index + length : *index;
  if (object.is_string())
    VALORA_CHECK(budget.look_at((*object.as<StrPtr>())->ascii ? 1 : object.text().size()));
  if (at < 0 || at >= length) return std::optional<Value>{};
  if (sequence) return std::optional((*sequence)->items[static_cast<size_t>(at)]);
  VALORA_TRY(character, slice(budget, object, at, at + 1, None{}));
  return std::optional(std::move(character));
}

}  // namespace

Result<Value> get_attribute(Runtime& runtime, const Value& object, const std::string& name) {
  VALORA_TRY(own, own_attribute(runtime, object, name));
  if (own) return std::move(*own);
  if (object.as<DictPtr>())
    if (auto found = item_of_dict(object, literal_string(name))) return std::move(*found);
  return no_attribute(object, name);
}

Result<Value> get_item(Runtime& runtime, const Value& object, const Value& key) {
  if (object.is_undefined()) return undefined_fault(object);
  VALORA_TRY(item, item_at(runtime.budget, object, key));
  if (item) return std::move(*item);
  if (key.is_string()) {
    VALORA_TRY(own, own_attribute(runtime, object, key.text()));
    return own ? std::move(*own) : no_attribute(object, key.text());
  }
  const auto text = to_repr(runtime.budget, key);
  return Value::undefined(described(object) + " has no element " +
                          (text.ok() ? shortened(*text, 80) : "of that key"));
}

Result<Value> get_path(Runtime& runtime, const Value& object, const Value& path) {
  if (!path.is_string()) return get_item(runtime, object, path);
  Value value = object;
  for (const std::string_view part : split(path.text(), ".", -1)) {
    int64_t index = 0;
    const bool is_index = !part.empty() && std::ranges::all_of(part, [](char c) {
      return c >= '0' && c <= '9';
    }) && std::from_chars(part.data(), part.data() + part.size(), index).ec == std::errc();
    VALORA_TRY(next, get_item(runtime, value,
                              is_index ? Value(index) : literal_string(std::string(part))));
    value = std::move(next);
  }
  return value;
}

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
