#include "jinja/builtins/builtins.h"

#include <algorithm>
#include <array>

namespace valora::jinja {
namespace {

constexpr std::array<std::string_view, 12> kUnsupported = {
    "encode",       "translate",   "maketrans", "format_map", "expandtabs", "casefold",
    "isidentifier", "isprintable", "istitle",   "fromkeys",   "bit_length", "is_integer"};
constexpr std::array<std::string_view, 8> kListChanges = {"append", "clear", "pop",    "reverse",
                                                          "insert", "sort",  "extend", "remove"};
constexpr std::array<std::string_view, 5> kDictChanges = {"clear", "pop", "popitem", "setdefault",
                                                          "update"};

struct BoundMethod final : Callable {
  BoundMethod(Value self, Method method) : self(std::move(self)), method(method) {}
  Result<Value> call(Runtime& runtime, CallArgs args) const override {
    return method(runtime, self, std::move(args));
  }
  int depth() const override { return depth_of(self) + 1; }

  Value self;
  Method method;
};

template <size_t N>
bool any_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Value unsafe(const Value& value, const std::string& name) {
  return Value::undefined("access to attribute '" + name + "' of '" +
                          std::string(type_name(value)) + "' object is unsafe.");
}

}  // namespace

bool is_unsupported_method(std::string_view name) { return any_of(kUnsupported, name); }

Result<std::optional<Value>> method_of(const Value& value, const std::string& name) {
  Method method = nullptr;
  if (value.is_string()) {
    method = string_method(name);
  } else if (const auto* sequence = value.as<SequencePtr>(); sequence && (*sequence)->indexable()) {
    if ((*sequence)->kind == Sequence::Kind::kList && any_of(kListChanges, name))
      return std::optional(unsafe(value, name));
    method = list_method(name);
  } else if (value.as<DictPtr>()) {
    if (any_of(kDictChanges, name)) return std::optional(unsafe(value, name));
    method = dict_method(name);
  }
  if (method)
    return std::optional<Value>(CallablePtr(std::make_shared<BoundMethod>(value, method)));
  if (value.is_string() && is_unsupported_method(name))
    return fault("the method '" + name + "' is not supported");
  return std::optional<Value>{};
}

}  // namespace valora::jinja
