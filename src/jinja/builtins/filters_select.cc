// map, select and related filters, which apply a filter, a test or an attribute to all items.
#include <algorithm>

#include "jinja/builtins/arguments.h"
#include "jinja/builtins/builtins.h"
#include "jinja/values/access.h"

namespace valora::jinja {
namespace {

// Removes the first positional argument, a name, and returns it.
Result<std::string> take_name(CallArgs& args, std::string_view what) {
  VALORA_TRY(name, expect_string(args.positional[0], what));
  std::string taken(name);
  args.positional.erase(args.positional.begin());
  return taken;
}

Result<Value> map_attribute(Runtime& runtime, const std::vector<Value>& items, CallArgs args) {
  VALORA_TRY(bound, bind("map", {"attribute", "default"}, 1, std::move(args)));
  std::vector<Value> mapped;
  for (const Value& item : items) {
    VALORA_TRY(value, get_path(runtime, item, *bound[0]));
    if (value.is_undefined() && bound[1]) value = *bound[1];
    mapped.push_back(std::move(value));
  }
  return make_sequence(runtime.budget, Sequence::Kind::kIterator, std::move(mapped));
}

Result<Value> map(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(items, items_of(runtime.budget, subject));
  if (args.positional.empty()) {
    if (args.named.empty()) return fault("map requires a filter argument");
    return map_attribute(runtime, items, std::move(args));
  }
  VALORA_TRY(filter, take_name(args, "the name of a filter"));
  std::vector<Value> mapped;
  for (const Value& item : items) {
    VALORA_TRY(value, apply_filter(runtime, filter, item, args));
    mapped.push_back(std::move(value));
  }
  return make_sequence(runtime.budget, Sequence::Kind::kIterator, std::move(mapped));
}

template <bool wanted, bool by_attribute>
Result<Value> select(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(items, items_of(runtime.budget, subject));
  std::optional<Value> attribute;
  if (by_attribute) {
    if (args.positional.empty()) return fault("Missing parameter for attribute name");
    attribute = args.positional[0];
    args.positional.erase(args.positional.begin());
  }
  std::optional<std::string> test;
  if (!args.positional.empty()) {
    VALORA_TRY(name, take_name(args, "the name of a test"));
    test = std::move(name);
  }
  std::vector<Value> selected;
  for (const Value& item : items) {
    Value value = item;
    if (attribute) {
      VALORA_TRY(found, get_path(runtime, item, *attribute));
      value = std::move(found);
    }
    bool holds = false;
    if (test) {
      VALORA_TRY(result, apply_test(runtime, *test, value, args));
      holds = result;
    } else {
      holds = truth(value);
    }
    if (holds == wanted) selected.push_back(item);
  }
  return make_sequence(runtime.budget, Sequence::Kind::kIterator, std::move(selected));
}

}  // namespace

FilterFunction select_filter(std::string_view name) {
  if (name == "map") return map;
  if (name == "select") return select<true, false>;
  if (name == "reject") return select<false, false>;
  if (name == "selectattr") return select<true, true>;
  if (name == "rejectattr") return select<false, true>;
  return nullptr;
}

}  // namespace valora::jinja
