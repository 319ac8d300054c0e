#include "jinja/builtins/arguments.h"
#include "jinja/builtins/builtins.h"
#include "jinja/values/format.h"
#include "jinja/values/slices.h"
#include "jinja/values/text_ops.h"

namespace valora::jinja {
namespace {

template <std::string (*convert)(std::string_view)>
Result<Value> convert_filter(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(none, bind("the filter", {}, 0, std::move(args)));
  VALORA_TRY(text, to_text(runtime.budget, subject));
  VALORA_CHECK(runtime.budget.take_string(text.size()));
  return make_string(runtime.budget, convert(text));
}

Result<Value> trim(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("trim", {"chars"}, 0, std::move(args)));
  VALORA_TRY(chars, optional_string(bound[0], "strip arg"));
  VALORA_TRY(text, to_text(runtime.budget, subject));
  return make_string(runtime.budget, std::string(strip(text, Side::kBoth, chars)));
}

Result<Value> replace_filter(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("replace", {"old", "new", "count"}, 2, std::move(args)));
  VALORA_TRY(text, to_text(runtime.budget, subject));
  VALORA_TRY(from, to_text(runtime.budget, *bound[0]));
  VALORA_TRY(to, to_text(runtime.budget, *bound[1]));
  if (bound[2] && bound[2]->is_none()) bound[2].reset();
  VALORA_TRY(limit, integer_or(bound[2], -1, "the count"));
  return replaced(runtime.budget, text, from, to, limit);
}

Result<Value> string(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(none, bind("string", {}, 0, std::move(args)));
  if (subject.is_string()) return subject;
  VALORA_TRY(text, to_text(runtime.budget, subject));
  return make_string(runtime.budget, std::move(text));
}

Result<Value> safe(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(none, bind("safe", {}, 0, std::move(args)));
  VALORA_TRY(text, to_text(runtime.budget, subject));
  return make_string(runtime.budget, std::move(text), /*markup=*/true);
}

Result<Value> escape(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(none, bind("escape", {}, 0, std::move(args)));
  return escaped(runtime.budget, subject);
}

Result<Value> indent(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("indent", {"width", "first", "blank"}, 0, std::move(args)));
  VALORA_TRY(text, expect_string(subject, "what is indented"));
  std::string indention(4, ' ');
  if (bound[0] && bound[0]->is_string()) {
    indention = bound[0]->text();
  } else if (bound[0]) {
    VALORA_TRY(width, expect_integer(*bound[0], "the width"));
    VALORA_TRY(spaces, repeated(runtime.budget, literal_string(" "), width));
    indention = spaces.text();
  }
  const std::string with_end = std::string(text) + "\n";
  VALORA_CHECK(runtime.budget.take(with_end.size() * sizeof(std::string_view)));
  const auto lines = split_lines(with_end, false);
  const bool blank = truth_or(bound[2], false);
  std::string out = truth_or(bound[1], false) ? indention : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += "\n";
    if (i > 0 && (blank || !lines[i].empty())) out += indention;
    out += lines[i];
    if (out.size() > kMaxStringBytes) VALORA_CHECK(runtime.budget.take_string(out.size()));
  }
  return make_string(runtime.budget, std::move(out));
}

Result<Value> center(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("center", {"width"}, 0, std::move(args)));
  VALORA_TRY(width, integer_or(bound[0], 80, "the width"));
  VALORA_TRY(text, to_text(runtime.budget, subject));
  const int64_t padding = std::max<int64_t>(width - code_points(text), 0);
  const int64_t left = padding / 2 + (padding & width & 1);
  return padded(runtime.budget, text, " ", left, padding - left);
}

Result<Value> wordcount(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(none, bind("wordcount", {}, 0, std::move(args)));
  VALORA_TRY(text, to_text(runtime.budget, subject));
  int64_t words = 0;
  bool inside = false;
  each_code_point(text, [&](char32_t c, std::string_view) {
    const bool word = c == '_' || general_category(c)[0] == 'L' || is_numeric(c);
    words += word && !inside;
    inside = word;
  });
  return Value(words);
}

Result<Value> truncate(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("truncate", {"length", "killwords", "end", "leeway"}, 0, std::move(args)));
  VALORA_TRY(length, integer_or(bound[0], 255, "the length"));
  VALORA_TRY(end, optional_string(bound[2], "the end"));
  VALORA_TRY(leeway, integer_or(bound[3], 5, "the leeway"));
  const std::string_view mark = end.value_or("...");
  if (length < code_points(mark) || leeway < 0)
    return fault(
        "truncate() needs a length of at least that of its end mark, and a leeway of at least 0");
  VALORA_TRY(size, length_of(subject));
  if (size - leeway <= length) return subject;
  VALORA_TRY(text, expect_string(subject, "what is truncated"));
  std::string_view kept = text.substr(0, byte_offset(text, length - code_points(mark)));
  if (!truth_or(bound[1], false)) kept = kept.substr(0, kept.rfind(' '));
  return make_string(runtime.budget, std::string(kept) + std::string(mark));
}

Result<Value> format(Runtime& runtime, const Value& subject, CallArgs args) {
  if (!args.positional.empty() && !args.named.empty())
    return fault("can't handle positional and keyword arguments at the same time");
  VALORA_TRY(form, to_text(runtime.budget, subject));
  if (args.named.empty()) {
    VALORA_TRY(values,
               make_sequence(runtime.budget, Sequence::Kind::kTuple, std::move(args.positional)));
    return format_percent(runtime.budget, form, values);
  }
  std::vector<Dict::Entry> entries;
  for (auto& [name, value] : args.named)
    entries.emplace_back(literal_string(name), std::move(value));
  VALORA_TRY(values, make_dict(runtime.budget, std::move(entries)));
  return format_percent(runtime.budget, form, values);
}

Result<JsonStyle> json_style(const Bound& bound) {
  JsonStyle style;
  style.ensure_ascii = truth_or(bound[0], false);
  style.sort_keys = truth_or(bound[3], false);
  if (bound[1] && !bound[1]->is_none()) {
    style.item_separator = ",";
    if (bound[1]->is_string()) {
      style.indent = bound[1]->text();
    } else {
      VALORA_TRY(width, expect_integer(*bound[1], "the indent"));
      if (width > 1000) return fault("an indent of more than 1000 is not supported");
      style.indent = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
  }
  if (bound[2] && !bound[2]->is_none()) {
    const auto* pair = bound[2]->as<SequencePtr>();
    if (!pair || (*pair)->items.size() != 2 || !(*pair)->items[0].is_string() ||
        !(*pair)->items[1].is_string())
      return fault("the separators must be two strings");
    style.item_separator = (*pair)->items[0].text();
    style.key_separator = (*pair)->items[1].text();
  }
  return style;
}

// As defined by transformers: without HTML escapes.
Result<Value> tojson(Runtime& runtime, const Value& subject, CallArgs args) {
  VALORA_TRY(bound, bind("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0,
                         std::move(args)));
  VALORA_TRY(style, json_style(bound));
  VALORA_TRY(text, to_json(runtime.budget, subject, style));
  return make_string(runtime.budget, std::move(text));
}

}  // namespace

FilterFunction text_filter(std::string_view name) {
  static const std::unordered_map<std::string_view, FilterFunction> kFilters = {
      {"upper", convert_filter<upper>},
      {"lower", convert_filter<lower>},
      {"capitalize", convert_filter<capitalize>},
      {"title", convert_filter<title_filter>},
      {"trim", trim},
      {"replace", replace_filter},
      {"string", string},
      {"safe", safe},
      {"escape", escape},
      {"e", escape},
      {"indent", indent},
      {"center", center},
      {"wordcount", wordcount},
      {"truncate", truncate},
      {"format", format},
      {"tojson", tojson}};
  const auto it = kFilters.find(name);
  return it == kFilters.end() ? nullptr : it->second;
}

}  // namespace valora::jinja
