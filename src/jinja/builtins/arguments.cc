#include "jinja/builtins/arguments.h"

#include <algorithm>

#include "base/text/strings.h"

namespace valora::jinja {

Result<Bound> bind(std::string_view function, std::initializer_list<std::string_view> parameters,
                   size_t required, CallArgs args) {
  const std::string name(function);
  if (args.positional.size() > parameters.size())
    return fault(name + "() takes at most " + std::to_string(parameters.size()) + " arguments (" +
                 std::to_string(args.positional.size()) + " given)");
  Bound bound(parameters.size());
  std::ranges::copy(args.positional, bound.begin());
  for (auto& [key, value] : args.named) {
    const size_t at = static_cast<size_t>(std::ranges::find(parameters, std::string_view(key)) -
                                          parameters.begin());
    if (at == parameters.size())
      return fault(name + "() got an unexpected keyword argument '" + shortened(key, 80) + "'");
    if (bound[at])
      return fault(name + "() got multiple values for argument '" + shortened(key, 80) + "'");
    bound[at] = std::move(value);
  }
  for (size_t i = 0; i < required; ++i)
    if (!bound[i])
      return fault(name + "() missing the argument '" + std::string(parameters.begin()[i]) + "'");
  return bound;
}

Error undefined_fault(const Value& value) { return fault(*value.as<Undefined>()->why); }

Result<std::string_view> expect_string(const Value& value, std::string_view what) {
  if (value.is_undefined()) return undefined_fault(value);
  if (!value.is_string())
    return fault(std::string(what) + " must be str, not " + std::string(type_name(value)));
  return std::string_view(value.text());
}

Result<int64_t> expect_integer(const Value& value, std::string_view what) {
  if (value.is_undefined()) return undefined_fault(value);
  const auto integer = as_integer(value);
  if (!integer)
    return fault(std::string(what) + " must be an integer, not '" + std::string(type_name(value)) +
                 "'");
  return *integer;
}

Result<std::optional<std::string_view>> optional_string(const std::optional<Value>& value,
                                                        std::string_view what) {
  if (!value || value->is_none()) return std::optional<std::string_view>{};
  VALORA_TRY(text, expect_string(*value, what));
  return std::optional<std::string_view>(text);
}

Result<int64_t> integer_or(const std::optional<Value>& value, int64_t fallback,
                           std::string_view what) {
  if (!value) return fallback;
  return expect_integer(*value, what);
}

bool truth_or(const std::optional<Value>& value, bool fallback) {
  return value ? truth(*value) : fallback;
}

}  // namespace valora::jinja
