#include "grammar/schema/schema_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "base/text/strings.h"
#include "grammar/schema/schema_words.h"

namespace valora::grammar {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxValues = 20000;
constexpr size_t kMaxEnum = 2000;        // values in all lists together
constexpr size_t kMaxProperties = 1000;  // in all objects together
constexpr int64_t kMaxBound = kMaxRepetition;

// Keywords that cannot be expressed in a grammar here.
constexpr Keys kRefused = {"not",
                           "if",
                           "then",
                           "else",
                           "dependentRequired",
                           "contains",
                           "minContains",
                           "maxContains",
                           "$dynamicRef",
                           "dependentSchemas",
                           "$recursiveRef",
                           "dependencies",
                           "additionalItems",
                           "unevaluatedItems"};
// Each of these keywords alone defines the value: xgrammar ignores its siblings.
constexpr Keys kDeciding = {"$ref", "const", "enum", "anyOf", "oneOf", "allOf"};
constexpr Keys kOfStrings = {"minLength", "maxLength", "pattern"};
constexpr Keys kOfNumbers = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
                             "multipleOf"};
constexpr Keys kOfArrays = {"items", "prefixItems", "minItems", "maxItems"};
constexpr Keys kOfObjects = {"properties",    "required",         "additionalProperties",
                             "minProperties", "maxProperties",    "unevaluatedProperties",
                             "propertyNames", "patternProperties"};
constexpr Keys kCounts = {"minLength", "maxLength",     "minItems",
                          "maxItems",  "minProperties", "maxProperties"};

// The formats that xgrammar enforces. With any other format, all strings are allowed.
constexpr Keys kFormats = {"date",          "date-time",    "duration", "email",
                           "hostname",      "ipv4",         "ipv6",     "time",
                           "uri-reference", "uri-template", "uri",      "uuid"};

std::string_view first_of(Keys keys, const Json& schema) {
  for (const char* key : keys)
    if (schema.contains(key)) return key;
  return {};
}

bool is_of_a_type(const Json& value, const Json& type) {
  if (type.is_string()) return is_of_type(value, type.get<std::string>());
  return type.is_array() && std::ranges::any_of(type, [&](const Json& one) {
           return one.is_string() && is_of_type(value, one.get<std::string>());
         });
}

std::string step_into(const std::string& place, std::string_view key) {
  return place + "/" + shortened(key, 60);
}

class SchemaCheck {
 public:
  SchemaCheck(const Json& root, bool strict) : root_(root), strict_(strict) {}

  Status run() {
    VALORA_CHECK(visit(root_, "#"));
    // References may point to places that no keyword marks as schemas.
    for (size_t i = 0; i < targets_.size(); ++i)
      if (const auto [target, place] = targets_[i]; !visited_.contains(target))
        VALORA_CHECK(visit(*target, place));
    return {};
  }

 private:
  Status visit(const Json& schema, const std::string& place) {
    visited_.insert(&schema);
    if (schema.is_boolean()) return {};
    if (!schema.is_object()) return fault(place, "must be a schema: an object or a boolean");
    VALORA_CHECK(check_keywords(schema, place));
    if (!strict_ && schema.value("unevaluatedProperties", Json()) == false &&
        !schema.contains("additionalProperties"))
      return fault(place,
                   "has \"unevaluatedProperties\": false, which is applied only if \"strict\" is "
                   "true; \"additionalProperties\" is always applied");
    VALORA_CHECK(check_beside(schema, place));
    VALORA_CHECK(check_patterns(schema, place));
    VALORA_CHECK(check_values(schema, place));
    VALORA_CHECK(check_required(schema, place));
    for (const auto& [key, value] : schema.items()) VALORA_CHECK(descend(key, value, place));
    return {};
  }

  static Error fault(const std::string& place, std::string_view reason) {
    return invalid(fmt::format("the schema at {} {}", place, reason));
  }

  static Status check_keywords(const Json& schema, const std::string& place) {
    for (const auto& [key, value] : schema.items()) {
      if (holds(kRefused, key))
        return fault(place, fmt::format("has \"{}\", which is not supported", key));
      if (key == "uniqueItems" && value != false)
        return fault(place, "has \"uniqueItems\", which is not supported");
      if (holds(kCounts, key) &&
          (!value.is_number_integer() || value < Json(0) || value > Json(kMaxBound)))
        return fault(step_into(place, key),
                     fmt::format("must be an integer from 0 to {}", kMaxBound));
      if (holds(kOfNumbers, key) && !value.is_number())
        return fault(step_into(place, key), "must be a number");
      // xgrammar's grammars for these formats produce characters that JSON must escape.
      if (key == "format" && (value == "json-pointer" || value == "relative-json-pointer"))
        return fault(place, "has a \"format\" that is not supported");
      // xgrammar applies only "format".
      if (key == "format" && is_known_format(value) && schema.contains("pattern"))
        return fault(place, "has \"pattern\" together with \"format\", which is not supported");
      if (key == "required" && !(value.is_array() && std::ranges::all_of(value, is_string)))
        return fault(step_into(place, key), "must be a list of strings");
    }
    return {};
  }

  static bool is_string(const Json& value) { return value.is_string(); }
  static bool is_known_format(const Json& value) {
    return value.is_string() && holds(kFormats, value.get_ref<const std::string&>());
  }

  // Rejects keywords that xgrammar would ignore.
  static Status check_beside(const Json& schema, const std::string& place) {
    const std::string_view deciding = first_of(kDeciding, schema);
    for (const auto& [key, value] : schema.items()) {
      const bool bounds = holds(kOfStrings, key) || holds(kOfNumbers, key) ||
                          holds(kOfArrays, key) || holds(kOfObjects, key);
      if (!deciding.empty() && (bounds || (holds(kDeciding, key) && key != deciding)))
        return fault(place, fmt::format("has \"{}\" together with \"{}\", which is not supported",
                                        key, deciding));
    }
    const Json& type = schema.contains("type") ? schema["type"] : Json();
    if (deciding == "const" || deciding == "enum") return check_listed(schema, type, place);
    if (!deciding.empty() && !type.is_null())
      return fault(place,
                   fmt::format("has \"type\" together with \"{}\"; put it into the schemas of "
                               "the latter",
                               deciding));
    if (!deciding.empty() || !type.is_null()) return check_type(type, place);
    return check_untyped(schema, place);
  }

  static Status check_listed(const Json& schema, const Json& type, const std::string& place) {
    const bool listed = schema.contains("enum");
    const Json& values = listed ? schema["enum"] : schema["const"];
    if (listed && (!values.is_array() || values.empty()))
      return fault(step_into(place, "enum"), "must be a list of values");
    if (type.is_null()) return {};
    const bool fits =
        listed ? std::ranges::all_of(values,
                                     [&](const Json& value) { return is_of_a_type(value, type); })
               : is_of_a_type(values, type);
    if (!fits) return fault(place, "lists a value that its \"type\" excludes");
    return {};
  }

  static Status check_type(const Json& type, const std::string& place) {
    if (type.is_null() || type.is_string()) return {};
    if (type.is_array() && !type.empty() && std::ranges::all_of(type, is_string)) return {};
    return fault(step_into(place, "type"), "must be a name or a list of names");
  }

  static Status check_untyped(const Json& schema, const std::string& place) {
    const bool object = schema.contains("properties") || schema.contains("additionalProperties");
    const bool array = schema.contains("items") || schema.contains("prefixItems");
    for (const auto& [key, value] : schema.items()) {
      const bool applied = (object && holds(kOfObjects, key)) || (array && holds(kOfArrays, key));
      const bool bounds = holds(kOfStrings, key) || holds(kOfNumbers, key) ||
                          holds(kOfArrays, key) || holds(kOfObjects, key);
      if (bounds && !applied) return fault(place, fmt::format("has \"{}\" but no \"type\"", key));
    }
    return {};
  }

  // xgrammar checks a property against its name or one pattern, not against all patterns that
  // match.
  static Status check_patterns(const Json& schema, const std::string& place) {
    if (!schema.contains("patternProperties")) return {};
    const Json& patterns = schema["patternProperties"];
    if (patterns.is_object() && patterns.size() > 1)
      return fault(step_into(place, "patternProperties"), "has several patterns; one is supported");
    for (const char* key : {"properties", "additionalProperties", "unevaluatedProperties"})
      if (schema.contains(key) && schema[key] != false && schema[key] != Json::object())
        return fault(place, fmt::format("has \"patternProperties\" together with \"{}\", which is "
                                        "not supported",
                                        key));
    return {};
  }

  // The grammar produces only the named properties, in the order of "properties".
  static Status check_required(const Json& schema, const std::string& place) {
    if (!schema.contains("required")) return {};
    for (const Json& name : schema["required"])
      if (!schema.contains("properties") ||
          !schema["properties"].contains(name.get_ref<const std::string&>()))
        return fault(place, fmt::format("requires \"{}\", which is not among its \"properties\"",
                                        shortened(name.get<std::string>(), 60)));
    return {};
  }

  Status check_values(const Json& schema, const std::string& place) {
    if (schema.contains("enum") && (enumerated_ += schema["enum"].size()) > kMaxEnum)
      return fault(step_into(place, "enum"),
                   fmt::format("exceeds {} listed values in the whole schema", kMaxEnum));
    if (schema.contains("properties") &&
        (properties_ += schema["properties"].size()) > kMaxProperties)
      return fault(step_into(place, "properties"),
                   fmt::format("exceeds {} properties in the whole schema", kMaxProperties));
    if (schema.contains("pattern")) {
      const Json& pattern = schema["pattern"];
      if (!pattern.is_string()) return fault(step_into(place, "pattern"), "must be a string");
      VALORA_CHECK(check_regex(pattern.get_ref<const std::string&>(),
                               "the schema at " + step_into(place, "pattern")));
    }
    if (schema.contains("patternProperties") && schema["patternProperties"].is_object())
      for (const auto& [pattern, value] : schema["patternProperties"].items())
        VALORA_CHECK(
            check_regex(pattern, "the schema at " + step_into(place, "patternProperties")));
    return schema.contains("$ref") ? check_reference(schema["$ref"], step_into(place, "$ref"))
                                   : Status();
  }

  Status check_reference(const Json& ref, const std::string& place) {
    if (!ref.is_string() || !ref.get_ref<const std::string&>().starts_with('#'))
      return fault(place, "must begin with #: only this schema is searched");
    const auto pointer = schema_pointer(ref.get_ref<const std::string&>());
    const Json* target = pointer ? find(root_, *pointer) : nullptr;
    if (target == nullptr) return fault(place, "points to nothing in the schema");
    targets_.emplace_back(target, shortened(ref.get<std::string>(), 300));
    return {};
  }

  Status descend(const std::string& key, const Json& value, const std::string& place) {
    const std::string inner = step_into(place, key);
    if (key == "propertyNames" && value.is_object() && !value.contains("type") &&
        first_of(kDeciding, value).empty()) {
      Json names = value;  // property names are strings
      names["type"] = "string";
      return visit(names, inner);
    }
    if (holds(kSchemas, key)) return visit(value, inner);
    if (holds(kListsOfSchemas, key)) {
      if (!value.is_array() || value.empty()) return fault(inner, "must be a list of schemas");
      for (size_t i = 0; i < value.size(); ++i)
        VALORA_CHECK(visit(value[i], fmt::format("{}/{}", inner, i)));
    }
    if (holds(kMapsOfSchemas, key)) {
      if (!value.is_object()) return fault(inner, "must be an object of schemas");
      for (const auto& [name, schema] : value.items())
        VALORA_CHECK(visit(schema, step_into(inner, name)));
    }
    return {};
  }

  const Json& root_;
  const bool strict_;
  std::set<const Json*> visited_;
  std::vector<std::pair<const Json*, std::string>> targets_;  // reference targets, locations
  size_t enumerated_ = 0, properties_ = 0;
};

}  // namespace

Status check_schema(const std::string& schema, bool strict) {
  const JsonLimits limits{.max_bytes = kMaxSchemaBytes,
                          .max_depth = kMaxDepth,
                          .max_values = kMaxValues,
                          .unique_keys = true};
  const auto parsed = parse_json(schema, "the schema", limits);
  if (!parsed.ok()) return invalid(parsed.error().message);
  return SchemaCheck(*parsed, strict).run();
}

}  // namespace valora::grammar
