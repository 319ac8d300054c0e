// Non-mutating methods of lists, tuples, ranges and dicts.
#include "jinja/builtins/arguments.h"
#include "jinja/builtins/builtins.h"
#include "jinja/values/operators.h"

namespace valora::jinja {
namespace {

Result<Value> list_index(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind("index", {"value"}, 1, std::move(args)));
  const auto& items = (*self.as<SequencePtr>())->items;
  for (size_t i = 0; i < items.size(); ++i) {
    VALORA_TRY(same, equal(runtime.budget, items[i], *bound[0]));
    if (same) return Value(static_cast<int64_t>(i));
  }
  return fault("the value is not in the list");
}

Result<Value> list_count(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind("count", {"value"}, 1, std::move(args)));
  int64_t count = 0;
  for (const Value& item : (*self.as<SequencePtr>())->items) {
    VALORA_TRY(same, equal(runtime.budget, item, *bound[0]));
    count += same;
  }
  return Value(count);
}

Result<Value> copy(Runtime&, const Value& self, CallArgs args) {
  VALORA_TRY(none, bind("copy", {}, 0, std::move(args)));
  return self;  // values are immutable
}

Result<Value> dict_get(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind("get", {"key", "default"}, 1, std::move(args)));
  if (!hashable(*bound[0]))
    return fault("unhashable type: '" + std::string(type_name(*bound[0])) + "'");
  if (bound[0]->is_string()) VALORA_CHECK(runtime.budget.look_at(bound[0]->text().size()));
  const Value* found = (*self.as<DictPtr>())->find(*bound[0]);
  return found ? *found : bound[1].value_or(None{});
}

template <Sequence::Kind kind>
Result<Value> dict_view(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(none, bind("the dict method", {}, 0, std::move(args)));
  std::vector<Value> items;
  for (const auto& [key, value] : (*self.as<DictPtr>())->entries()) {
    VALORA_CHECK(runtime.budget.take(sizeof(Value)));
    if (kind == Sequence::Kind::kItems) {
      VALORA_TRY(pair, make_sequence(runtime.budget, Sequence::Kind::kTuple, {key, value}));
      items.push_back(std::move(pair));
    } else {
      items.push_back(kind == Sequence::Kind::kKeys ? key : value);
    }
  }
  return make_sequence(runtime.budget, kind, std::move(items));
}

}  // namespace

Method list_method(std::string_view name) {
  if (name == "index") return list_index;
  if (name == "count") return list_count;
  if (name == "copy") return copy;
  return nullptr;
}

Method dict_method(std::string_view name) {
  if (name == "get") return dict_get;
  if (name == "items") return dict_view<Sequence::Kind::kItems>;
  if (name == "keys") return dict_view<Sequence::Kind::kKeys>;
  if (name == "values") return dict_view<Sequence::Kind::kValues>;
  if (name == "copy") return copy;
  return nullptr;
}

}  // namespace valora::jinja
