#include "text/replacement.h"

#include <algorithm>

#include "text/json_fields.h"
#include "text/pretokenizers/regex_syntax.h"

namespace valora::text {
namespace {

// A regular expression may match the empty text between any two characters and at both ends.
size_t growth(const Json& pattern, std::string_view content) {
  if (!pattern.contains("String")) return 1 + 2 * content.size();
  const size_t size = pattern.at("String").get_ref<const std::string&>().size();
  return std::max<size_t>(1, (content.size() + size - 1) / size);
}

}  // namespace

Result<Regex> read_pattern(const Json& object, const std::string& where) {
  const auto pattern = object.find("pattern");
  if (pattern == object.end() || !pattern->is_object() || pattern->size() != 1)
    return refuse(where, "\"pattern\" must be {\"Regex\": …} or {\"String\": …}");
  const std::string kind = pattern->begin().key();
  if (kind != "Regex" && kind != "String")
    return refuse(where, "unknown kind of pattern " + in_quotes(kind));
  VALORA_TRY(text, field<std::string>(*pattern, where, kind));
  if (text.empty()) return refuse(where, "the pattern is empty");
  auto translated = kind == "Regex" ? translate_regex(text) : literal_regex(text);
  if (!translated.ok()) return refuse(where, "pattern: " + translated.error().message);
  auto regex = Regex::compile(*translated);
  if (!regex.ok()) return refuse(where, "pattern: " + regex.error().message);
  return regex;
}

Result<Replacement> Replacement::read(const Json& json, const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type", "pattern", "content"}));
  VALORA_TRY(pattern, read_pattern(json, where));
  VALORA_TRY(content, field<std::string>(json, where, "content"));
  const size_t max_growth = growth(json.at("pattern"), content);
  return Replacement(std::move(pattern), std::move(content), max_growth);
}

std::string Replacement::apply(std::string_view utf8) const {
  size_t head = 0;
  return apply(utf8, head);
}

std::string Replacement::apply(std::string_view utf8, size_t& head) const {
  if (utf8.empty()) return {};  // even if the pattern matches the empty text
  std::string out;
  out.reserve(utf8.size());
  const size_t old_head = head;
  head = 0;
  size_t done = 0;
  const auto keep = [&](size_t end) {
    if (done < old_head) head = out.size() + std::min(end, old_head) - done;
    out += utf8.substr(done, end - done);
  };
  for (const Span& match : pattern_.find_all(utf8)) {
    keep(match.begin);
    out += content_;
    if (old_head > 0 && match.end <= old_head) head = out.size();
    done = match.end;
  }
  keep(utf8.size());
  return out;
}

}  // namespace valora::text
