#include "text/metaspace.h"

#include "text/json_fields.h"

namespace valora::text {
namespace {

Result<PrependScheme> read_scheme(const Json& json, const std::string& where) {
  if (!json.contains("prepend_scheme")) return PrependScheme::kAlways;
  VALORA_TRY(name, field<std::string>(json, where, "prepend_scheme"));
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  return refuse(where, "unknown prepend_scheme " + in_quotes(name));
}

}  // namespace

Result<Metaspace> Metaspace::read(const Json& json, const std::string& where) {
  VALORA_CHECK(check_fields(
      json, where,
      {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"}));
  Metaspace result;
  VALORA_TRY(replacement, character_field(json, where, "replacement"));
  VALORA_TRY(scheme, read_scheme(json, where));
  VALORA_TRY(split, field_or<bool>(json, where, "split", true));
  VALORA_TRY(add_prefix_space, field_or<bool>(json, where, "add_prefix_space", true));
  if (!add_prefix_space && scheme != PrependScheme::kNever)
    return refuse(where, "\"add_prefix_space\" does not match \"prepend_scheme\"");
  result.replacement = std::move(replacement);
  result.scheme = scheme;
  result.split = split;
  return result;
}

}  // namespace valora::text
