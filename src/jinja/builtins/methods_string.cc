#include <algorithm>
#include <string>

#include "jinja/builtins/arguments.h"
#include "jinja/builtins/builtins.h"
#include "jinja/values/access.h"
#include "jinja/values/format.h"
#include "jinja/values/slices.h"
#include "jinja/values/text_ops.h"

namespace valora::jinja {
namespace {

Result<Value> list_of(Budget& budget, const std::vector<std::string_view>& parts,
                      Sequence::Kind kind = Sequence::Kind::kList) {
  std::vector<Value> items;
  for (const std::string_view part : parts) {
    VALORA_CHECK(budget.take(sizeof(Value)));
    VALORA_TRY(item, make_string(budget, std::string(part)));
    items.push_back(std::move(item));
  }
  return make_sequence(budget, kind, std::move(items));
}

template <std::string (*convert)(std::string_view)>
Result<Value> convert_method(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(none, bind("the string method", {}, 0, std::move(args)));
  // A character may become up to three.
  VALORA_CHECK(runtime.budget.take_string(self.text().size()));
  return make_string(runtime.budget, convert(self.text()));
}

template <Side side>
Result<Value> strip_method(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind("strip", {"chars"}, 0, std::move(args)));
  VALORA_TRY(chars, optional_string(bound[0], "strip arg"));
  VALORA_CHECK(runtime.budget.look_at(self.text().size()));
  return make_string(runtime.budget, std::string(strip(self.text(), side, chars)));
}

template <bool from_right>
Result<Value> split_method(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind("split", {"sep", "maxsplit"}, 0, std::move(args)));
  VALORA_TRY(separator, optional_string(bound[0], "the separator"));
  VALORA_TRY(limit, integer_or(bound[1], -1, "maxsplit"));
  if (separator && separator->empty()) return fault("empty separator");
  // For the list of views, which is created before the list of strings.
  VALORA_CHECK(
      runtime.budget.take(self.text().size() * (separator ? 16 / separator->size() + 1 : 8)));
  const auto parts = from_right ? split_from_right(self.text(), separator, limit)
                                : split(self.text(), separator, limit);
  return list_of(runtime.budget, parts);
}

Result<Value> splitlines_method(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind("splitlines", {"keepends"}, 0, std::move(args)));
  VALORA_CHECK(runtime.budget.take(self.text().size() * 16));
  return list_of(runtime.budget, split_lines(self.text(), truth_or(bound[0], false)));
}

template <bool from_right>
Result<Value> partition_method(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind("partition", {"sep"}, 1, std::move(args)));
  VALORA_TRY(separator, expect_string(*bound[0], "the separator"));
  if (separator.empty()) return fault("empty separator");
  VALORA_CHECK(runtime.budget.look_at(self.text().size()));
  const std::string_view text = self.text();
  const size_t at = from_right ? text.rfind(separator) : text.find(separator);
  std::vector<std::string_view> parts{text, "", ""};
  if (at != text.npos)
    parts = {text.substr(0, at), separator, text.substr(at + separator.size())};
  else if (from_right)
    parts = {"", "", text};
  return list_of(runtime.budget, parts, Sequence::Kind::kTuple);
}

// The part of a string selected by a method's optional start and end arguments, and its offset.
struct Part {
  std::string_view text;
  int64_t start = 0;
  bool empty_range = false;  // start is after end: nothing is found, not even ""
};

Result<Part> part_of(const Value& self, const std::optional<Value>& from,
                     const std::optional<Value>& to) {
  Part part{self.text()};
  if ((!from || from->is_none()) && (!to || to->is_none())) return part;
  VALORA_TRY(length, length_of(self));
  const auto position = [&](const std::optional<Value>& bound,
                            int64_t fallback) -> Result<int64_t> {
    if (!bound || bound->is_none()) return fallback;
    VALORA_TRY(index, expect_integer(*bound, "a slice index"));
    return index < 0 ? std::max<int64_t>(index + length, 0) : index;
  };
  VALORA_TRY(start, position(from, 0));
  VALORA_TRY(stop, position(to, length));
  part.start = start;
  part.empty_range = start > std::min(stop, length);
  if (part.empty_range) {
    part.text = {};
    return part;
  }
  const size_t begin = byte_offset(part.text, start);
  part.text = part.text.substr(begin, byte_offset(part.text, std::min(stop, length)) - begin);
  return part;
}

template <bool at_end>
Result<Value> affix_method(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind(at_end ? "endswith" : "startswith", {"prefix", "start", "end"}, 1,
                         std::move(args)));
  VALORA_CHECK(runtime.budget.look_at(self.text().size()));
  VALORA_TRY(part, part_of(self, bound[1], bound[2]));
  const auto matches = [&](const Value& affix) -> Result<bool> {
    if (!affix.is_string()) {
      if (affix.is_undefined()) return undefined_fault(affix);
      return fault(std::string(at_end ? "endswith" : "startswith") +
                   " first arg must be str or a tuple of str, not " +
                   std::string(type_name(affix)));
    }
    if (part.empty_range) return false;
    return at_end ? part.text.ends_with(affix.text()) : part.text.starts_with(affix.text());
  };
  const auto* tuple = bound[0]->as<SequencePtr>();
  if (!tuple || (*tuple)->kind != Sequence::Kind::kTuple) {
    VALORA_TRY(found, matches(*bound[0]));
    return Value(found);
  }
  for (const Value& affix : (*tuple)->items) {
    VALORA_TRY(found, matches(affix));
    if (found) return Value(true);
  }
  return Value(false);
}

template <bool from_right, bool must_be_found>
Result<Value> find_method(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind("find", {"sub", "start", "end"}, 1, std::move(args)));
  VALORA_TRY(wanted, expect_string(*bound[0], "the argument of find()"));
  VALORA_CHECK(runtime.budget.look_at(self.text().size()));
  VALORA_TRY(part, part_of(self, bound[1], bound[2]));
  const size_t at = part.empty_range ? std::string_view::npos
                    : from_right     ? part.text.rfind(wanted)
                                     : part.text.find(wanted);
  if (at != std::string_view::npos) return Value(part.start + code_points(part.text.substr(0, at)));
  if (must_be_found) return fault("substring not found");
  return Value(int64_t{-1});
}

Result<Value> count_method(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind("count", {"sub", "start", "end"}, 1, std::move(args)));
  VALORA_TRY(wanted, expect_string(*bound[0], "the argument of count()"));
  VALORA_CHECK(runtime.budget.look_at(self.text().size()));
  VALORA_TRY(part, part_of(self, bound[1], bound[2]));
  return Value(part.empty_range ? int64_t{0} : count_of(part.text, wanted));
}

Result<Value> replace_method(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind("replace", {"old", "new", "count"}, 2, std::move(args)));
  VALORA_TRY(from, expect_string(*bound[0], "replace() argument 1"));
  VALORA_TRY(to, expect_string(*bound[1], "replace() argument 2"));
  VALORA_TRY(limit, integer_or(bound[2], -1, "the count"));
  return replaced(runtime.budget, self.text(), from, to, limit);
}

Result<Value> join_method(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind("join", {"iterable"}, 1, std::move(args)));
  if (!iterable(*bound[0])) return fault("can only join an iterable");
  VALORA_TRY(items, items_of(runtime.budget, *bound[0]));
  std::vector<std::string_view> parts;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_string())
      return fault("sequence item " + std::to_string(i) + ": expected str instance, " +
                   std::string(type_name(items[i])) + " found");
    parts.push_back(items[i].text());
  }
  return joined(runtime.budget, parts, self.text());
}

template <bool prefix>
Result<Value> remove_affix_method(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind(prefix ? "removeprefix" : "removesuffix", {"affix"}, 1, std::move(args)));
  VALORA_TRY(affix, expect_string(*bound[0], "the argument of removeprefix()"));
  std::string_view text = self.text();
  if (prefix && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (!prefix && text.ends_with(affix)) text.remove_suffix(affix.size());
  return make_string(runtime.budget, std::string(text));
}

enum class Justify : uint8_t { kLeft, kRight, kCenter };

template <Justify where>
Result<Value> justify_method(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind("ljust", {"width", "fillchar"}, 1, std::move(args)));
  VALORA_TRY(width, expect_integer(*bound[0], "the width"));
  VALORA_TRY(fill, optional_string(bound[1], "the fill character"));
  const std::string_view character = fill.value_or(" ");
  if (code_points(character) != 1)
    return fault("The fill character must be exactly one character long");
  VALORA_TRY(length, length_of(self));
  const int64_t padding = std::max<int64_t>(width - length, 0);
  const int64_t left = where == Justify::kLeft    ? 0
                       : where == Justify::kRight ? padding
                                                  : padding / 2 + (padding & width & 1);
  return padded(runtime.budget, self.text(), character, left, padding - left);
}

Result<Value> zfill_method(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(bound, bind("zfill", {"width"}, 1, std::move(args)));
  VALORA_TRY(width, expect_integer(*bound[0], "the width"));
  VALORA_TRY(length, length_of(self));
  std::string_view text = self.text();
  const bool sign = text.starts_with('+') || text.starts_with('-');
  VALORA_TRY(zeros, padded(runtime.budget, text.substr(sign), "0",
                           std::max<int64_t>(width - length, 0), 0));
  if (!sign) return zeros;
  return make_string(runtime.budget, std::string(1, text[0]) + zeros.text());
}

template <const char* name>
Result<Value> predicate_method(Runtime& runtime, const Value& self, CallArgs args) {
  VALORA_TRY(none, bind(name, {}, 0, std::move(args)));
  VALORA_CHECK(runtime.budget.look_at(self.text().size()));
  return Value(*string_predicate(name, self.text()));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): all methods have one signature
Result<Value> format_method(Runtime& runtime, const Value& self, CallArgs args) {
  return format_braces(runtime.budget, self.text(), args);
}

constexpr char kIsAlpha[] = "isalpha", kIsDigit[] = "isdigit", kIsAlnum[] = "isalnum",
               kIsDecimal[] = "isdecimal";
constexpr char kIsNumeric[] = "isnumeric", kIsSpace[] = "isspace", kIsAscii[] = "isascii",
               kIsUpper[] = "isupper", kIsLower[] = "islower";

}  // namespace

Method string_method(std::string_view name) {
  static const std::unordered_map<std::string_view, Method> kMethods = {
      {"upper", convert_method<upper>},
      {"lower", convert_method<lower>},
      {"capitalize", convert_method<capitalize>},
      {"title", convert_method<title>},
      {"swapcase", convert_method<swap_case>},
      {"strip", strip_method<Side::kBoth>},
      {"lstrip", strip_method<Side::kLeft>},
      {"rstrip", strip_method<Side::kRight>},
      {"split", split_method<false>},
      {"rsplit", split_method<true>},
      {"splitlines", splitlines_method},
      {"partition", partition_method<false>},
      {"rpartition", partition_method<true>},
      {"startswith", affix_method<false>},
      {"endswith", affix_method<true>},
      {"find", find_method<false, false>},
      {"rfind", find_method<true, false>},
      {"index", find_method<false, true>},
      {"rindex", find_method<true, true>},
      {"count", count_method},
      {"replace", replace_method},
      {"join", join_method},
      {"removeprefix", remove_affix_method<true>},
      {"removesuffix", remove_affix_method<false>},
      {"ljust", justify_method<Justify::kLeft>},
      {"rjust", justify_method<Justify::kRight>},
      {"center", justify_method<Justify::kCenter>},
      {"zfill", zfill_method},
      {"format", format_method},
      {"isalpha", predicate_method<kIsAlpha>},
      {"isdigit", predicate_method<kIsDigit>},
      {"isalnum", predicate_method<kIsAlnum>},
      {"isdecimal", predicate_method<kIsDecimal>},
      {"isnumeric", predicate_method<kIsNumeric>},
      {"isspace", predicate_method<kIsSpace>},
      {"isascii", predicate_method<kIsAscii>},
      {"isupper", predicate_method<kIsUpper>},
      {"islower", predicate_method<kIsLower>}};
  const auto it = kMethods.find(name);
  return it == kMethods.end() ? nullptr : it->second;
}

}  // namespace valora::jinja
