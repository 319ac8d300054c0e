#include <algorithm>

#include "jinja/builtins/arguments.h"
#include "jinja/builtins/builtins.h"
#include "jinja/values/access.h"
#include "jinja/values/format.h"
#include "jinja/values/operators.h"
#include "jinja/values/slices.h"

namespace valora::jinja {
namespace {

Result<Value> default_value(Runtime&, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("default", {"default_value", "boolean"}, 0, std::move(args)));
  if (!subject.is_undefined() && (!truth_or(bound[1], false) || truth(subject))) return subject;
  return bound[0].value_or(literal_string(""));
}

Result<Value> length(Runtime&, const Value& subject, CallArgs args) {
  VALORA_TRY(none, bind("length", {}, 0, std::move(args)));
  VALORA_TRY(size, length_of(subject));
  return Value(size);
}

Result<Value> list(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(none, bind("list", {}, 0, std::move(args)));
  VALORA_TRY(items, items_of(runtime.budget, subject));
  return make_list(runtime.budget, std::move(items));
}

Result<Value> first(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(none, bind("first", {}, 0, std::move(args)));
  VALORA_TRY(iterator, Iterator::over(subject));
  VALORA_TRY(item, iterator.next(runtime.budget));
  return item ? std::move(*item) : Value::undefined("No first item, sequence was empty.");
}

// The values that Python's reversed() accepts.
Result<std::vector<Value>> reversed_items(Budget& budget, const Value& subject) {
  const auto* sequence = subject.as<SequencePtr>();
  if (sequence && !(*sequence)->has_length())
    return fault("'" + std::string(type_name(subject)) + "' object is not reversible");
  VALORA_TRY(items, items_of(budget, subject));
  std::ranges::reverse(items);
  return items;
}

Result<Value> last(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(none, bind("last", {}, 0, std::move(args)));
  VALORA_TRY(items, reversed_items(runtime.budget, subject));
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.front();
}

Result<Value> reverse(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(none, bind("reverse", {}, 0, std::move(args)));
  if (subject.is_string()) return slice(runtime.budget, subject, None{}, None{}, int64_t{-1});
  VALORA_TRY(items, items_of(runtime.budget, subject));
  std::ranges::reverse(items);
  return make_sequence(runtime.budget, Sequence::Kind::kIterator, std::move(items));
}

Result<Value> join(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("join", {"d", "attribute"}, 0, std::move(args)));
  VALORA_TRY(separator, to_text(runtime.budget, bound[0].value_or(literal_string(""))));
  VALORA_TRY(items, items_of(runtime.budget, subject));
  std::vector<std::string> texts;
  for (const Value& item : items) {
    Value part = item;
    if (bound[1] && !bound[1]->is_none()) {
      VALORA_TRY(found, get_path(runtime, item, *bound[1]));
      part = std::move(found);
    }
    VALORA_TRY(text, to_text(runtime.budget, part));
    VALORA_CHECK(runtime.budget.take(text.size() + sizeof(std::string)));
    texts.push_back(std::move(text));
  }
  const std::vector<std::string_view> parts(texts.begin(), texts.end());
  return joined(runtime.budget, parts, separator);
}

Result<Value> items(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(none, bind("items", {}, 0, std::move(args)));
  std::vector<Value> pairs;
  if (!subject.is_undefined()) {
    const auto* dict = subject.as<DictPtr>();
    if (!dict) return fault("Can only get item pairs from a mapping.");
    for (const auto& [key, value] : (*dict)->entries()) {
      VALORA_TRY(pair, make_sequence(runtime.budget, Sequence::Kind::kTuple, {key, value}));
      pairs.push_back(std::move(pair));
    }
  }
  return make_sequence(runtime.budget, Sequence::Kind::kIterator, std::move(pairs));
}

Result<Value> sum(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("sum", {"attribute", "start"}, 0, std::move(args)));
  VALORA_TRY(terms, items_of(runtime.budget, subject));
  Value total = bound[1].value_or(int64_t{0});
  if (total.is_string()) return fault("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : terms) {
    Value term = item;
    if (bound[0] && !bound[0]->is_none()) {
      VALORA_TRY(found, get_path(runtime, item, *bound[0]));
      term = std::move(found);
    }
    VALORA_TRY(next, apply(runtime.budget, Binary::Op::kAdd, total, term));
    total = std::move(next);
  }
  return total;
}

Result<Value> batch(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("batch", {"linecount", "fill_with"}, 1, std::move(args)));
  VALORA_TRY(size, expect_integer(*bound[0], "the size of a batch"));
  if (size < 1 || size > kMaxRange)
    return fault("a batch of " + std::to_string(size) + " is not supported");
  VALORA_TRY(all, items_of(runtime.budget, subject));
  std::vector<Value> batches;
  for (size_t i = 0; i < all.size(); i += static_cast<size_t>(size)) {
    std::vector<Value> part(
        all.begin() + static_cast<int64_t>(i),
        all.begin() + static_cast<int64_t>(std::min(all.size(), i + static_cast<size_t>(size))));
    if (bound[1] && !bound[1]->is_none()) part.resize(static_cast<size_t>(size), *bound[1]);
    VALORA_TRY(list, make_list(runtime.budget, std::move(part)));
    batches.push_back(std::move(list));
  }
  return make_sequence(runtime.budget, Sequence::Kind::kIterator, std::move(batches));
}

Result<Value> slices(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("slice", {"slices", "fill_with"}, 1, std::move(args)));
  VALORA_TRY(count, expect_integer(*bound[0], "the number of slices"));
  if (count < 1 || count > kMaxRange)
    return fault("a slice filter of " + std::to_string(count) + " is not supported");
  VALORA_TRY(all, items_of(runtime.budget, subject));
  const auto total = static_cast<int64_t>(all.size());
  std::vector<Value> made;
  auto begin = all.begin();
  for (int64_t i = 0; i < count; ++i) {
    const auto end = begin + total / count + (i < total % count ? 1 : 0);
    std::vector<Value> part(begin, end);
    if (bound[1] && !bound[1]->is_none() && i >= total % count) part.push_back(*bound[1]);
    VALORA_TRY(list, make_list(runtime.budget, std::move(part)));
    made.push_back(std::move(list));
    begin = end;
  }
  return make_sequence(runtime.budget, Sequence::Kind::kIterator, std::move(made));
}

}  // namespace

FilterFunction sequence_filter(std::string_view name) {
  static const std::unordered_map<std::string_view, FilterFunction> kFilters = {
      {"default", default_value},
      {"d", default_value},
      {"length", length},
      {"count", length},
      {"list", list},
      {"first", first},
      {"last", last},
      {"reverse", reverse},
      {"join", join},
      {"items", items},
      {"sum", sum},
      {"batch", batch},
      {"slice", slices}};
  const auto it = kFilters.find(name);
  return it == kFilters.end() ? nullptr : it->second;
}

}  // namespace valora::jinja
