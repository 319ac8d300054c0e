#include "jinja/builtins/builtins.h"

#include "jinja/builtins/arguments.h"
#include "jinja/values/access.h"
#include "jinja/values/format.h"
#include "jinja/values/operators.h"
#include "jinja/values/text_ops.h"

namespace valora::jinja {
namespace {

using Answer = Result<bool>;
using Plain = bool (*)(const Value& value);
using WithRuntime = Answer (*)(Runtime& runtime, const Value& value);
using WithOther = Answer (*)(Runtime& runtime, const Value& value, const Value& other);

bool is_sequence(const Value& value) {
  const auto* sequence = value.as<SequencePtr>();
  return value.is_string() || value.as<DictPtr>() || value.is_undefined() ||
         (sequence && (*sequence)->indexable());
}

const std::unordered_map<std::string_view, Plain>& plain_tests() {
  static const std::unordered_map<std::string_view, Plain> kTests = {
      {"defined", [](const Value& v) { return !v.is_undefined(); }},
      {"undefined", [](const Value& v) { return v.is_undefined(); }},
      {"none", [](const Value& v) { return v.is_none(); }},
      {"boolean", [](const Value& v) { return v.as<bool>() != nullptr; }},
      {"true", [](const Value& v) { return v.as<bool>() && *v.as<bool>(); }},
      {"false", [](const Value& v) { return v.as<bool>() && !*v.as<bool>(); }},
      {"integer", [](const Value& v) { return v.as<int64_t>() || v.as<Large>(); }},
      {"float", [](const Value& v) { return v.as<double>() != nullptr; }},
      {"number", [](const Value& v) { return as_number(v).has_value(); }},
      {"string", [](const Value& v) { return v.is_string(); }},
      {"mapping", [](const Value& v) { return v.as<DictPtr>() != nullptr; }},
      {"sequence", is_sequence},
      {"iterable", [](const Value& v) { return iterable(v); }},
      // Python's callable() is true for an undefined value.
      {"callable",
       [](const Value& v) { return v.as<CallablePtr>() || v.as<LoopPtr>() || v.is_undefined(); }},
      {"escaped", [](const Value& v) { return v.is_string() && (*v.as<StrPtr>())->markup; }},
      {"filter", [](const Value& v) { return v.is_string() && is_filter(v.text()); }},
      {"test", [](const Value& v) { return v.is_string() && is_test(v.text()); }}};
  return kTests;
}

template <bool upper_case>
Answer has_case(Runtime& runtime, const Value& value) {
  VALORA_TRY(text, to_text(runtime.budget, value));
  return upper_case ? is_upper(text) : is_lower(text);
}

template <int64_t rest>
Answer has_rest_of_two(Runtime& runtime, const Value& value) {
  VALORA_TRY(left, apply(runtime.budget, Binary::Op::kModulo, value, int64_t{2}));
  return equal(runtime.budget, left, rest);
}

const std::unordered_map<std::string_view, WithRuntime>& runtime_tests() {
  static const std::unordered_map<std::string_view, WithRuntime> kTests = {
      {"upper", has_case<true>},
      {"lower", has_case<false>},
      {"odd", has_rest_of_two<1>},
      {"even", has_rest_of_two<0>}};
  return kTests;
}

Answer is_equal(Runtime& runtime, const Value& a, const Value& b) {
  return equal(runtime.budget, a, b);
}
Answer is_unequal(Runtime& runtime, const Value& a, const Value& b) {
  VALORA_TRY(same, equal(runtime.budget, a, b));
  return !same;
}

enum class Sign : uint8_t { kLess, kLessEqual, kGreater, kGreaterEqual };
template <Sign wanted>
Answer ordered(Runtime& runtime, const Value& a, const Value& b) {
  static constexpr std::string_view kSigns[] = {"<", "<=", ">", ">="};
  VALORA_TRY(sign, order(runtime.budget, a, b, kSigns[static_cast<size_t>(wanted)]));
  switch (wanted) {
    case Sign::kLess: return sign == -1;
    case Sign::kLessEqual: return sign == -1 || sign == 0;
    case Sign::kGreater: return sign == 1;
    default: return sign == 1 || sign == 0;
  }
}

Answer divisible(Runtime& runtime, const Value& value, const Value& by) {
  VALORA_TRY(rest, apply(runtime.budget, Binary::Op::kModulo, value, by));
  return equal(runtime.budget, rest, int64_t{0});
}

Answer is_in(Runtime& runtime, const Value& value, const Value& container) {
  return contains(runtime.budget, container, value);
}
Answer is_same(Runtime&, const Value& a, const Value& b) { return same_object(a, b); }

const std::unordered_map<std::string_view, WithOther>& other_tests() {
  static const std::unordered_map<std::string_view, WithOther> kTests = {
      {"==", is_equal},
      {"eq", is_equal},
      {"equalto", is_equal},
      {"!=", is_unequal},
      {"ne", is_unequal},
      {"<", ordered<Sign::kLess>},
      {"lt", ordered<Sign::kLess>},
      {"lessthan", ordered<Sign::kLess>},
      {"<=", ordered<Sign::kLessEqual>},
      {"le", ordered<Sign::kLessEqual>},
      {">", ordered<Sign::kGreater>},
      {"gt", ordered<Sign::kGreater>},
      {"greaterthan", ordered<Sign::kGreater>},
      {">=", ordered<Sign::kGreaterEqual>},
      {"ge", ordered<Sign::kGreaterEqual>},
      {"divisibleby", divisible},
      {"in", is_in},
      {"sameas", is_same}};
  return kTests;
}

}  // namespace

bool is_test(std::string_view name) {
  return plain_tests().contains(name) || runtime_tests().contains(name) ||
         other_tests().contains(name);
}

Result<bool> apply_test(Runtime& runtime, const std::string& name, const Value& value,
                        const CallArgs& args) {
  VALORA_CHECK(runtime.budget.step());
  if (const auto it = other_tests().find(name); it != other_tests().end()) {
    VALORA_TRY(bound, bind(name, {"other"}, 1, CallArgs{args}));
    return it->second(runtime, value, *bound[0]);
  }
  VALORA_TRY(none, bind(name, {}, 0, CallArgs{args}));
  if (const auto it = plain_tests().find(name); it != plain_tests().end()) return it->second(value);
  if (const auto it = runtime_tests().find(name); it != runtime_tests().end())
    return it->second(runtime, value);
  return fault("the test '" + name + "' is not supported");
}

}  // namespace valora::jinja
