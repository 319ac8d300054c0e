#include "jinja/values/value.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "jinja/loop.h"
#include "jinja/values/operators.h"
#include "jinja/values/text_ops.h"

namespace valora::jinja {
namespace {

size_t hash_number(double number) {
  // Equal numbers of different types must be the same key.
  if (number == std::floor(number) && std::abs(number) < 9.0e18)
    return std::hash<int64_t>{}(static_cast<int64_t>(number));
  return std::hash<double>{}(number);
}

Status check_depth(int depth) {
  if (depth <= kMaxValueDepth) return {};
  return fault("the template nests values deeper than " + std::to_string(kMaxValueDepth) +
               " levels");
}

}  // namespace

Value Value::undefined(std::string why) {
  return Undefined{std::make_shared<const std::string>(std::move(why))};
}

const std::string& Value::text() const { return std::get<StrPtr>(data_)->text; }

size_t KeyHash::operator()(const Value& key) const {
  if (key.is_string()) return std::hash<std::string>{}(key.text());
  if (const auto integer = as_integer(key)) return std::hash<int64_t>{}(*integer);
  if (const auto number = as_number(key)) return hash_number(*number);
  if (const auto* sequence = key.as<SequencePtr>()) {
    size_t hash = 17;
    for (const Value& item : (*sequence)->items) hash = hash * 1000003 + (*this)(item);
    return hash;
  }
  return key.data().index();
}

bool KeyEqual::operator()(const Value& a, const Value& b) const { return same_key(a, b); }

const Value* Dict::find(const Value& key) const {
  const auto it = index_.find(key);
  return it == index_.end() ? nullptr : &entries_[it->second].second;
}

const Value* Dict::find(std::string_view key) const {
  return find(literal_string(std::string(key)));
}

const Value* Namespace::find(std::string_view name) const {
  const auto it = std::ranges::find(
      attributes, name, [](const auto& entry) -> std::string_view { return entry.first; });
  return it == attributes.end() ? nullptr : &it->second;
}

void Namespace::set(const std::string& name, Value value) {
  const auto it = std::ranges::find(
      attributes, name, [](const auto& entry) -> const std::string& { return entry.first; });
  if (it == attributes.end())
    attributes.emplace_back(name, std::move(value));
  else
    it->second = std::move(value);
}

Value literal_string(std::string text) {
  const bool ascii =
      std::ranges::all_of(text, [](char c) { return static_cast<signed char>(c) >= 0; });
  return std::make_shared<const Str>(Str{std::move(text), ascii, false});
}

Result<Value> make_string(Budget& budget, std::string text, bool markup) {
  VALORA_CHECK(budget.take_string(text.size()));
  const bool ascii =
      std::ranges::all_of(text, [](char c) { return static_cast<signed char>(c) >= 0; });
  return Value(std::make_shared<const Str>(Str{std::move(text), ascii, markup}));
}

Result<Value> make_sequence(Budget& budget, Sequence::Kind kind, std::vector<Value> items) {
  VALORA_CHECK(budget.step(1 + items.size()));
  VALORA_CHECK(budget.take(items.size() * sizeof(Value) + sizeof(Sequence)));
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, depth_of(item));
  VALORA_CHECK(check_depth(depth + 1));
  auto sequence = std::make_shared<Sequence>();
  sequence->kind = kind;
  sequence->items = std::move(items);
  sequence->depth = depth + 1;
  return Value(SequencePtr(std::move(sequence)));
}

Result<Value> make_dict(Budget& budget, std::vector<Dict::Entry> entries) {
  VALORA_CHECK(budget.step(1 + entries.size()));
  VALORA_CHECK(budget.take(entries.size() * (sizeof(Dict::Entry) + 64) + sizeof(Dict)));
  auto dict = std::make_shared<Dict>();
  int depth = 0;
  for (auto& [key, value] : entries) {
    if (!hashable(key)) return fault("unhashable type: '" + std::string(type_name(key)) + "'");
    depth = std::max({depth, depth_of(key), depth_of(value)});
    const auto [it, added] = dict->index_.try_emplace(key, dict->entries_.size());
    if (added)
      dict->entries_.emplace_back(std::move(key), std::move(value));
    else
      dict->entries_[it->second].second = std::move(value);
  }
  VALORA_CHECK(check_depth(depth + 1));
  dict->depth_ = depth + 1;
  return Value(DictPtr(std::move(dict)));
}

bool truth(const Value& value) {
  if (const auto number = as_number(value)) return *number != 0;
  if (value.is_none() || value.is_undefined()) return false;
  if (value.is_string()) return !value.text().empty();
  if (const auto* sequence = value.as<SequencePtr>())
    return !(*sequence)->has_length() || !(*sequence)->items.empty();
  if (const auto* dict = value.as<DictPtr>()) return !(*dict)->entries().empty();
  return true;
}

int depth_of(const Value& value) {
  if (const auto* sequence = value.as<SequencePtr>()) return (*sequence)->depth;
  if (const auto* dict = value.as<DictPtr>()) return (*dict)->depth();
  if (const auto* loop = value.as<LoopPtr>()) return (*loop)->depth();
  if (const auto* callable = value.as<CallablePtr>()) return (*callable)->depth();
  return 0;
}

std::string_view type_name(const Value& value) {
  static constexpr std::string_view kNames[] = {"NoneType", "Undefined", "bool",        "int",
                                                "int",      "float",     "str",         "list",
                                                "dict",     "Namespace", "LoopContext", "function"};
  if (const auto* sequence = value.as<SequencePtr>()) {
    static constexpr std::string_view kSequences[] = {
        "list", "tuple", "range", "dict_keys", "dict_values", "dict_items", "generator"};
    return kSequences[static_cast<size_t>((*sequence)->kind)];
  }
  return kNames[value.data().index()];
}

std::optional<int64_t> as_integer(const Value& value) {
  if (const auto* integer = value.as<int64_t>()) return *integer;
  if (const auto* boolean = value.as<bool>()) return *boolean ? 1 : 0;
  return std::nullopt;
}

std::optional<double> as_number(const Value& value) {
  if (const auto* number = value.as<double>()) return *number;
  if (const auto* large = value.as<Large>()) return static_cast<double>(large->value);
  if (const auto integer = as_integer(value)) return static_cast<double>(*integer);
  return std::nullopt;
}

bool hashable(const Value& value) {
  if (value.as<DictPtr>()) return false;
  const auto* sequence = value.as<SequencePtr>();
  if (!sequence) return true;
  if ((*sequence)->kind == Sequence::Kind::kRange) return true;
  return (*sequence)->kind == Sequence::Kind::kTuple &&
         std::ranges::all_of((*sequence)->items, hashable);
}

Result<int64_t> length_of(const Value& value) {
  if (const auto* string = value.as<StrPtr>())
    return static_cast<int64_t>((*string)->ascii ? (*string)->text.size()
                                                 : code_points((*string)->text));
  if (const auto* sequence = value.as<SequencePtr>(); sequence && (*sequence)->has_length())
    return static_cast<int64_t>((*sequence)->items.size());
  if (const auto* dict = value.as<DictPtr>())
    return static_cast<int64_t>((*dict)->entries().size());
  if (value.is_undefined()) return int64_t{0};
  return fault("object of type '" + std::string(type_name(value)) + "' has no len()");
}

}  // namespace valora::jinja
