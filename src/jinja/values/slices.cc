#include "jinja/values/slices.h"

#include <algorithm>

#include "jinja/builtins/arguments.h"
#include "jinja/values/text_ops.h"

namespace valora::jinja {
namespace {

struct Bounds {
  int64_t start, step, count;
};

Result<Bounds> bounds_of(int64_t length, const Value& start, const Value& stop, const Value& step) {
  int64_t by = 1;
  if (!step.is_none()) {
    VALORA_TRY(given, expect_integer(step, "a slice index"));
    by = std::max<int64_t>(given, -INT64_MAX);
  }
  if (by == 0) return fault("slice step cannot be zero");
  const int64_t lowest = by > 0 ? 0 : -1, highest = by > 0 ? length : length - 1;
  const auto bound = [&](const Value& value, int64_t fallback) -> Result<int64_t> {
    if (value.is_none()) return fallback;
    VALORA_TRY(index, expect_integer(value, "a slice index"));
    return std::clamp(index < 0 ? index + length : index, lowest, highest);
  };
  VALORA_TRY(from, bound(start, by > 0 ? lowest : highest));
  VALORA_TRY(to, bound(stop, by > 0 ? highest : lowest));
  const int64_t distance = by > 0 ? to - from : from - to;
  const int64_t size = by > 0 ? by : -by;
  return Bounds{from, by, distance <= 0 ? 0 : (distance - 1) / size + 1};
}

Result<Value> slice_string(Budget& budget, const Str& string, const Bounds& bounds) {
  const std::string_view text = string.text;
  if (string.ascii || bounds.step == 1) {
    const size_t begin =
        string.ascii ? static_cast<size_t>(bounds.start) : byte_offset(text, bounds.start);
    if (bounds.step == 1) {
      const std::string_view rest = bounds.count == 0 ? "" : text.substr(begin);
      return make_string(
          budget, std::string(rest.substr(0, string.ascii ? static_cast<size_t>(bounds.count)
                                                          : byte_offset(rest, bounds.count))));
    }
  }
  std::vector<std::string_view> characters;
  VALORA_CHECK(budget.take(text.size() * sizeof(std::string_view)));
  each_code_point(text,
                  [&](char32_t, std::string_view character) { characters.push_back(character); });
  std::string out;
  for (int64_t i = 0; i < bounds.count; ++i)
    out += characters[static_cast<size_t>(bounds.start + i * bounds.step)];
  return make_string(budget, std::move(out));
}

}  // namespace

Result<Value> slice(Budget& budget, const Value& value, const Value& start, const Value& stop,
                    const Value& step) {
  if (value.is_undefined()) return undefined_fault(value);
  const auto* sequence = value.as<SequencePtr>();
  if (!value.is_string() && !(sequence && (*sequence)->indexable()))
    return fault("'" + std::string(type_name(value)) +
                 "' object is not subscriptable with a slice");
  VALORA_TRY(length, length_of(value));
  VALORA_TRY(bounds, bounds_of(length, start, stop, step));
  if (value.is_string()) {
    VALORA_CHECK(budget.look_at(value.text().size()));
    return slice_string(budget, **value.as<StrPtr>(), bounds);
  }
  if ((*sequence)->kind == Sequence::Kind::kRange)
    return fault("slices of a range are not supported; make a list of it first (|list)");
  std::vector<Value> items;
  VALORA_CHECK(budget.take(static_cast<size_t>(bounds.count) * sizeof(Value)));
  for (int64_t i = 0; i < bounds.count; ++i)
    items.push_back((*sequence)->items[static_cast<size_t>(bounds.start + i * bounds.step)]);
  return make_sequence(budget, (*sequence)->kind, std::move(items));
}

Result<Value> replaced(Budget& budget, std::string_view text, std::string_view from,
                       std::string_view to, int64_t limit) {
  VALORA_CHECK(budget.look_at(text.size()));
  const auto count = static_cast<size_t>(count_of(text, from, limit));
  if (!to.empty() && count > kMaxStringBytes / to.size())
    VALORA_CHECK(budget.take_string(kMaxStringBytes + 1));
  VALORA_CHECK(budget.take_string(text.size() + count * to.size() - count * from.size()));
  return make_string(budget, replace(text, from, to, limit));
}

Result<Value> joined(Budget& budget, std::span<const std::string_view> parts,
                     std::string_view separator) {
  size_t size = 0;
  for (const std::string_view part : parts) {
    size += part.size() + separator.size();
    if (size > 2 * kMaxStringBytes) VALORA_CHECK(budget.take_string(size));
  }
  std::string out;
  out.reserve(size);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return make_string(budget, std::move(out));
}

Result<Value> padded(Budget& budget, std::string_view text, std::string_view fill, int64_t left,
                     int64_t right) {
  const auto too_long = static_cast<int64_t>(kMaxStringBytes);
  if (left > too_long || right > too_long) VALORA_CHECK(budget.take_string(kMaxStringBytes + 1));
  VALORA_CHECK(budget.take_string(text.size() + fill.size() * static_cast<size_t>(left + right)));
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += text;
  for (int64_t i = 0; i < right; ++i) out += fill;
  return make_string(budget, std::move(out));
}

Result<Value> repeated(Budget& budget, const Value& value, int64_t times) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  if (value.is_string()) {
    const std::string& text = value.text();
    if (!text.empty() && count > kMaxStringBytes / text.size())
      VALORA_CHECK(budget.take_string(kMaxStringBytes + 1));
    std::string out;
    out.reserve(text.size() * count);
    if (!text.empty())
      for (size_t i = 0; i < count; ++i) out += text;
    return make_string(budget, std::move(out));
  }
  const Sequence& sequence = **value.as<SequencePtr>();
  if (!sequence.items.empty() && count > kMaxSteps / sequence.items.size())
    VALORA_CHECK(budget.step(kMaxSteps + 1));
  VALORA_CHECK(budget.take(sequence.items.size() * count * sizeof(Value)));
  std::vector<Value> items;
  items.reserve(sequence.items.size() * count);
  if (!sequence.items.empty())
    for (size_t i = 0; i < count; ++i)
      items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  return make_sequence(budget, sequence.kind, std::move(items));
}

}  // namespace valora::jinja
