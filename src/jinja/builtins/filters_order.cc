#include <algorithm>
#include <unordered_set>

#include "jinja/builtins/arguments.h"
#include "jinja/builtins/builtins.h"
#include "jinja/values/access.h"
#include "jinja/values/operators.h"
#include "jinja/values/text_ops.h"

namespace valora::jinja {
namespace {

struct Keyed {
  Value key, item;
};

Result<Value> without_case(Budget& budget, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  return make_string(budget, lower(value.text()));
}

// The sort key of an item. With `several`, the attribute may be a comma-separated list, and the key
// is a list.
Result<Value> key_of(Runtime& runtime, const Value& item, const std::optional<Value>& attribute,
                     bool case_sensitive, bool several) {
  if (!attribute || attribute->is_none()) return without_case(runtime.budget, item, case_sensitive);
  if (!several || !attribute->is_string()) {
    VALORA_TRY(found, get_path(runtime, item, *attribute));
    return without_case(runtime.budget, found, case_sensitive);
  }
  std::vector<Value> keys;
  for (const std::string_view path : split(attribute->text(), ",", -1)) {
    VALORA_TRY(found, get_path(runtime, item, literal_string(std::string(path))));
    VALORA_TRY(key, without_case(runtime.budget, found, case_sensitive));
    keys.push_back(std::move(key));
  }
  return make_list(runtime.budget, std::move(keys));
}

Result<std::vector<Keyed>> keyed_items(Runtime& runtime, const Value& subject,
                                       const std::optional<Value>& attribute, bool case_sensitive,
                                       bool several) {
  VALORA_TRY(items, items_of(runtime.budget, subject));
  std::vector<Keyed> keyed;
  for (Value& item : items) {
    VALORA_TRY(key, key_of(runtime, item, attribute, case_sensitive, several));
    VALORA_CHECK(runtime.budget.take(sizeof(Keyed)));
    keyed.push_back({std::move(key), std::move(item)});
  }
  return keyed;
}

// Stable in both directions, as Python's sorted().
Status sort_keyed(Budget& budget, std::vector<Keyed>& keyed, bool descending) {
  Status status;
  const auto before = [&](const Keyed& a, const Keyed& b) {
    if (!status.ok()) return false;
    const auto sign = descending ? order(budget, b.key, a.key) : order(budget, a.key, b.key);
    if (!sign.ok()) status = sign.error();
    return sign.ok() && *sign < 0;
  };
  std::ranges::stable_sort(keyed, before);
  return status;
}

Result<Value> list_of_items(Budget& budget, std::vector<Keyed> keyed) {
  std::vector<Value> items;
  for (Keyed& entry : keyed) items.push_back(std::move(entry.item));
  return make_list(budget, std::move(items));
}

Result<Value> sort(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("sort", {"reverse", "case_sensitive", "attribute"}, 0, std::move(args)));
  VALORA_TRY(keyed,
             keyed_items(runtime, subject, bound[2], truth_or(bound[1], false), /*several=*/true));
  VALORA_CHECK(sort_keyed(runtime.budget, keyed, truth_or(bound[0], false)));
  return list_of_items(runtime.budget, std::move(keyed));
}

Result<Value> dictsort(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("dictsort", {"case_sensitive", "by", "reverse"}, 0, std::move(args)));
  VALORA_TRY(by, optional_string(bound[1], "by"));
  const std::string_view what = by.value_or("key");
  if (what != "key" && what != "value")
    return fault("You can only sort by either \"key\" or \"value\"");
  if (subject.is_undefined()) return undefined_fault(subject);
  const auto* dict = subject.as<DictPtr>();
  if (!dict)
    return fault("'" + std::string(type_name(subject)) + "' object has no attribute 'items'");
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : (*dict)->entries()) {
    VALORA_TRY(pair, make_sequence(runtime.budget, Sequence::Kind::kTuple, {key, value}));
    VALORA_TRY(by_key, without_case(runtime.budget, what == "key" ? key : value,
                                    truth_or(bound[0], false)));
    keyed.push_back({std::move(by_key), std::move(pair)});
  }
  VALORA_CHECK(sort_keyed(runtime.budget, keyed, truth_or(bound[2], false)));
  return list_of_items(runtime.budget, std::move(keyed));
}

template <bool largest>
Result<Value> extreme(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound,
             bind(largest ? "max" : "min", {"case_sensitive", "attribute"}, 0, std::move(args)));
  VALORA_TRY(keyed,
             keyed_items(runtime, subject, bound[1], truth_or(bound[0], false), /*several=*/false));
  if (keyed.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  size_t best = 0;
  for (size_t i = 1; i < keyed.size(); ++i) {
    VALORA_TRY(sign, order(runtime.budget, keyed[i].key, keyed[best].key, largest ? ">" : "<"));
    if (largest ? sign == 1 : sign == -1) best = i;
  }
  return keyed[best].item;
}

Result<Value> unique(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("unique", {"case_sensitive", "attribute"}, 0, std::move(args)));
  VALORA_TRY(keyed,
             keyed_items(runtime, subject, bound[1], truth_or(bound[0], false), /*several=*/false));
  std::unordered_set<Value, KeyHash, KeyEqual> seen;
  std::vector<Value> items;
  for (Keyed& entry : keyed) {
    if (!hashable(entry.key))
      return fault("unhashable type: '" + std::string(type_name(entry.key)) + "'");
    if (seen.insert(std::move(entry.key)).second) items.push_back(std::move(entry.item));
  }
  return make_sequence(runtime.budget, Sequence::Kind::kIterator, std::move(items));
}

}  // namespace

FilterFunction order_filter(std::string_view name) {
  if (name == "sort") return sort;
  if (name == "dictsort") return dictsort;
  if (name == "min") return extreme<false>;
  if (name == "max") return extreme<true>;
  if (name == "unique") return unique;
  return nullptr;
}

}  // namespace valora::jinja
