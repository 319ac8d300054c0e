// Global functions and namespaces.
#include <algorithm>
#include <array>
#include <ctime>

#include "base/text/strings.h"
#include "base/text/unicode.h"
#include "jinja/builtins/arguments.h"
#include "jinja/runtime.h"
#include "jinja/values/access.h"
#include "jinja/values/format.h"

namespace valora::jinja {
namespace {

Result<Value> call_range(Runtime& runtime, CallArgs args) {
  VALORA_TRY(bound, bind("range", {"start", "stop", "step"}, 1, std::move(args)));
  auto range = std::make_shared<Sequence>();
  range->kind = Sequence::Kind::kRange;
  VALORA_TRY(first, expect_integer(*bound[0], "an argument of range()"));
  VALORA_TRY(second, integer_or(bound[1], first, "an argument of range()"));
  VALORA_TRY(step, integer_or(bound[2], 1, "an argument of range()"));
  if (step == 0) return fault("range() arg 3 must not be zero");
  range->start = bound[1] ? first : 0;
  range->stop = second;
  range->step = step;
  // In 128 bits, because start and stop may be any 64-bit integers.
  const __int128 distance =
      step > 0 ? __int128(range->stop) - range->start : __int128(range->start) - range->stop;
  const __int128 size = step > 0 ? __int128(step) : -__int128(step);
  const __int128 count = distance <= 0 ? 0 : (distance - 1) / size + 1;
  if (count > kMaxRange)
    return fault("Range too big. The sandbox blocks ranges larger than MAX_RANGE (" +
                 std::to_string(kMaxRange) + ").");
  VALORA_CHECK(runtime.budget.take(static_cast<size_t>(count) * sizeof(Value)));
  VALORA_CHECK(runtime.budget.step(static_cast<size_t>(count) / 16));
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i)
    range->items.push_back(range->start + i * step);
  return Value(SequencePtr(std::move(range)));
}

// The entries of dict(…) and namespace(…): a dict or a list of pairs, then named arguments.
Result<std::vector<Dict::Entry>> entries_of(Runtime& runtime, CallArgs args,
                                            std::string_view function) {
  std::vector<Dict::Entry> entries;
  if (args.positional.size() > 1)
    return fault(std::string(function) + " expected at most 1 argument, got " +
                 std::to_string(args.positional.size()));
  if (!args.positional.empty()) {
    if (const auto* dict = args.positional[0].as<DictPtr>()) {
      entries = (*dict)->entries();
    } else if (args.positional[0].is_undefined()) {
      return undefined_fault(args.positional[0]);
    } else {
      VALORA_TRY(pairs, items_of(runtime.budget, args.positional[0]));
      for (const Value& pair : pairs) {
        VALORA_TRY(parts, items_of(runtime.budget, pair));
        if (parts.size() != 2)
          return fault(std::string(function) + "() takes pairs of a key and a value");
        entries.emplace_back(parts[0], parts[1]);
      }
    }
  }
  for (auto& [name, value] : args.named)
    entries.emplace_back(literal_string(name), std::move(value));
  return entries;
}

Result<Value> call_dict(Runtime& runtime, CallArgs args) {
  VALORA_TRY(entries, entries_of(runtime, std::move(args), "dict"));
  return make_dict(runtime.budget, std::move(entries));
}

Result<Value> call_namespace(Runtime& runtime, CallArgs args) {
  VALORA_TRY(entries, entries_of(runtime, std::move(args), "namespace"));
  VALORA_CHECK(runtime.budget.take(sizeof(Namespace) + entries.size() * 2 * sizeof(Value)));
  VALORA_CHECK(runtime.budget.step(entries.size() * (1 + entries.size() / 64)));
  auto made = std::make_shared<Namespace>();
  for (auto& [name, value] : entries) {
    VALORA_TRY(text, expect_string(name, "the name of a namespace's attribute"));
    made->set(std::string(text), std::move(value));
  }
  runtime.namespaces.push_back(made);
  return Value(std::move(made));
}

Result<Value> call_raise_exception(Runtime& runtime, CallArgs args) {
  VALORA_TRY(bound, bind("raise_exception", {"message"}, 1, std::move(args)));
  VALORA_TRY(message, to_text(runtime.budget, *bound[0]));
  runtime.raised = true;
  return fault(shortened(message, 4096));
}

// strftime's %f, %z and %Z differ from those of Python's datetime without a time zone.
std::string python_format(std::string_view format, int64_t microseconds) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const char directive = format[++i];
    if (directive == 'f') {
      const std::string digits = std::to_string(microseconds);
      out += std::string(6 - digits.size(), '0') + digits;
    } else if (directive != 'z' && directive != 'Z') {
      (out += '%') += directive;
    }
  }
  return out;
}

Result<Value> call_strftime_now(Runtime& runtime, CallArgs args) {
  VALORA_TRY(bound, bind("strftime_now", {"format"}, 1, std::move(args)));
  VALORA_TRY(format, expect_string(*bound[0], "the format of strftime_now()"));
  if (format.size() > 1000) return fault("the format of strftime_now() is longer than 1000 bytes");
  const auto now = runtime.now ? runtime.now() : std::chrono::system_clock::now();
  const auto whole = std::chrono::floor<std::chrono::seconds>(now);
  const std::time_t time = std::chrono::system_clock::to_time_t(whole);
  std::tm local{};
  localtime_r(&time, &local);
  const int64_t microseconds =
      std::chrono::duration_cast<std::chrono::microseconds>(now - whole).count();
  // The extra last character distinguishes an empty result from one that does not fit.
  const std::string form = python_format(format, microseconds) + " ";
  std::array<char, 16384> buffer;
  const size_t size = std::strftime(buffer.data(), buffer.size(), form.c_str(), &local);
  if (size == 0) return fault("the text of strftime_now() is too long");
  return make_string(runtime.budget, to_valid_utf8({buffer.data(), size - 1}));
}

struct GlobalFunction final : Callable {
  using Function = Result<Value> (*)(Runtime&, CallArgs);
  explicit GlobalFunction(Function function) : function(function) {}
  Result<Value> call(Runtime& runtime, CallArgs args) const override {
    return function(runtime, std::move(args));
  }
  Function function;
};

}  // namespace

CallablePtr find_global(std::string_view name) {
  static const std::unordered_map<std::string_view, CallablePtr> kGlobals = {
      {"range", std::make_shared<GlobalFunction>(call_range)},
      {"dict", std::make_shared<GlobalFunction>(call_dict)},
      {"namespace", std::make_shared<GlobalFunction>(call_namespace)},
      {"raise_exception", std::make_shared<GlobalFunction>(call_raise_exception)},
      {"strftime_now", std::make_shared<GlobalFunction>(call_strftime_now)}};
  const auto it = kGlobals.find(name);
  return it == kGlobals.end() ? nullptr : it->second;
}

bool is_unsupported_global(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kNames = {"lipsum", "cycler",  "joiner", "self",
                                                             "caller", "varargs", "kwargs"};
  return std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace valora::jinja
