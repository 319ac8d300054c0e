#include "grammar/spec.h"

#include <fmt/format.h>

#include "base/json/json.h"
#include "base/text/unicode.h"
#include "grammar/schema/schema_check.h"

namespace valora::grammar {
namespace {

constexpr size_t kMaxChoices = 1000;
constexpr size_t kMaxChoiceBytes = 64 << 10;  // of all choices together
constexpr size_t kMaxTagBytes = 128 << 10;

Status check_choices(const std::vector<std::string>& choices) {
  if (choices.empty()) return invalid("the list of choices is empty");
  if (choices.size() > kMaxChoices)
    return invalid(
        fmt::format("{} choices are given; at most {} are allowed", choices.size(), kMaxChoices));
  size_t bytes = 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].empty()) return invalid(fmt::format("choice {} is empty", i));
    if (!is_valid_utf8(choices[i])) return invalid(fmt::format("choice {} is not UTF-8", i));
    if (choices[i].find('\0') != std::string::npos)
      return invalid(fmt::format("choice {} has a null character", i));
    bytes += choices[i].size();
  }
  if (bytes > kMaxChoiceBytes)
    return invalid(
        fmt::format("the choices have {} bytes; at most {} are allowed", bytes, kMaxChoiceBytes));
  return {};
}

Status check_space(const Json& most) {
  if (most.is_null()) return {};
  if (most.is_number_integer() && most >= Json(1) && most <= Json(kMaxRepetition)) return {};
  return invalid(
      fmt::format("\"max_whitespace_cnt\" must be an integer from 1 to {}", kMaxRepetition));
}

// Checks the schemas anywhere in a structural tag.
Status check_schemas_in(const Json& tag) {
  if (!tag.is_structured()) return {};
  const auto schema = tag.is_object() ? tag.find("json_schema") : tag.end();
  const bool holds = schema != tag.end() && tag.value("type", Json()) == "json_schema";
  if (holds) {
    VALORA_CHECK(check_space(tag.value("max_whitespace_cnt", Json())));
    return check_schema(schema->dump(), /*strict=*/true);
  }
  for (const Json& part : tag) VALORA_CHECK(check_schemas_in(part));
  return {};
}

struct Checker {
  Status operator()(const JsonObjectSpec&) const { return {}; }
  Status operator()(const JsonSchemaSpec& spec) const {
    return check_schema(spec.schema, spec.strict);
  }
  Status operator()(const RegexSpec& spec) const {
    return check_regex(spec.pattern, "the regular expression");
  }
  Status operator()(const ChoiceSpec& spec) const { return check_choices(spec.choices); }
  Status operator()(const EbnfSpec& spec) const { return check_ebnf(spec.text); }
  Status operator()(const StructuralTagSpec& spec) const {
    const JsonLimits limits{
        .max_bytes = kMaxTagBytes, .max_depth = 64, .max_values = 20000, .unique_keys = true};
    const auto tag = parse_json(spec.json, "the structural tag", limits);
    if (!tag.ok()) return invalid(tag.error().message);
    if (!tag->is_object()) return invalid("the structural tag is not an object");
    return check_schemas_in(*tag);
  }
};

}  // namespace

Status check(const GrammarSpec& spec) { return std::visit(Checker{}, spec); }

Digest digest_of(const GrammarSpec& spec) {
  DigestBuilder digest;
  digest.add(static_cast<uint32_t>(spec.index()));
  if (const auto* any = std::get_if<JsonObjectSpec>(&spec))
    digest.add(static_cast<uint8_t>(any->spacing));
  if (const auto* schema = std::get_if<JsonSchemaSpec>(&spec))
    digest.add(std::string_view(schema->schema))
        .add(static_cast<uint8_t>(schema->strict))
        .add(static_cast<uint8_t>(schema->spacing));
  if (const auto* regex = std::get_if<RegexSpec>(&spec))
    digest.add(std::string_view(regex->pattern));
  if (const auto* choice = std::get_if<ChoiceSpec>(&spec))
    for (const std::string& text : choice->choices) digest.add(std::string_view(text));
  if (const auto* ebnf = std::get_if<EbnfSpec>(&spec)) digest.add(std::string_view(ebnf->text));
  if (const auto* tag = std::get_if<StructuralTagSpec>(&spec))
    digest.add(std::string_view(tag->json)).add(static_cast<uint8_t>(tag->spacing));
  return digest.finish();
}

std::string ebnf_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace valora::grammar
