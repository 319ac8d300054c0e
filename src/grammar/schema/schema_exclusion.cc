#include "grammar/schema/schema_exclusion.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "grammar/schema/schema_words.h"

namespace valora::grammar {
namespace {

constexpr int kMaxProofDepth = 16;
constexpr int kMaxHops = 64;
constexpr const char* kTypes[] = {"null",   "boolean", "integer", "number",
                                  "string", "array",   "object"};

const OrderedJson* member_of(const OrderedJson& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

bool is_false(const OrderedJson* schema) { return schema != nullptr && *schema == false; }

// Equality in the sense of JSON Schema: 1 equals 1.0, and the order of properties does not matter.
bool equal(const OrderedJson& a, const OrderedJson& b) {
  return a.is_structured() ? Json(a) == Json(b) : a == b;
}

// The values listed by "enum" or "const"; null: not limited to a list.
const OrderedJson* listed(const OrderedJson& schema, OrderedJson& one) {
  if (const OrderedJson* values = member_of(schema, "enum")) return values;
  const OrderedJson* value = member_of(schema, "const");
  if (value == nullptr) return nullptr;
  one = OrderedJson::array({*value});
  return &one;
}

const OrderedJson* alternatives(const OrderedJson& schema) {
  const OrderedJson* any = member_of(schema, "anyOf");
  return any != nullptr ? any : member_of(schema, "oneOf");
}

// The types that the schema's grammar produces (`written`), or that are valid under the schema.
// Without "type", a schema with "properties" produces objects, but any other value is valid under
// it.
std::vector<std::string> types_of(const OrderedJson& schema, bool written) {
  const OrderedJson* type = member_of(schema, "type");
  if (type != nullptr && type->is_string()) return {type->get<std::string>()};
  if (type != nullptr) return type->get<std::vector<std::string>>();
  if (written && (schema.contains("properties") || schema.contains("additionalProperties")))
    return {"object"};
  if (written && (schema.contains("items") || schema.contains("prefixItems"))) return {"array"};
  return {std::begin(kTypes), std::end(kTypes)};
}

bool numeric(const std::string& type) { return type == "integer" || type == "number"; }

bool is_integral(const OrderedJson& value) {
  if (!value.is_number()) return false;
  return value.is_number_integer() || std::floor(value.get<double>()) == value.get<double>();
}

bool valid_type(const OrderedJson& value, const std::string& type) {
  return type == "integer" ? is_integral(value) : is_of_type(value, type);
}

// Beyond 2^53 a double may not equal the integer, so it proves nothing.
double number_or(const OrderedJson& schema, const char* key, double fallback) {
  const OrderedJson* value = member_of(schema, key);
  if (value == nullptr || !value->is_number()) return fallback;
  const auto number = value->get<double>();
  return std::abs(number) < 0x1p53 ? number : fallback;
}

// True if all numbers allowed by `low` are below all numbers allowed by `high`.
bool below(const OrderedJson& low, const OrderedJson& high) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const double most = number_or(low, "maximum", kNone),
               less = number_or(low, "exclusiveMaximum", kNone);
  const double least = number_or(high, "minimum", -kNone),
               more = number_or(high, "exclusiveMinimum", -kNone);
  return most < least || less <= least || most <= more || less <= more;
}

bool lengths_differ(const OrderedJson& a, const OrderedJson& b, const char* least,
                    const char* most) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  return number_or(a, most, kNone) < number_or(b, least, 0) ||
         number_or(b, most, kNone) < number_or(a, least, 0);
}

std::vector<std::string> required_of(const OrderedJson& schema) {
  const OrderedJson* names = member_of(schema, "required");
  return names == nullptr ? std::vector<std::string>() : names->get<std::vector<std::string>>();
}

const OrderedJson* property(const OrderedJson& schema, const std::string& name) {
  const OrderedJson* properties = member_of(schema, "properties");
  return properties == nullptr ? nullptr : member_of(*properties, name.c_str());
}

// True if all properties other than the named ones are invalid.
bool closed(const OrderedJson& schema) {
  return is_false(member_of(schema, "additionalProperties")) &&
         !schema.contains("patternProperties");
}

// True if the grammar produces only the named properties.
bool written_closed(const OrderedJson& schema, bool strict) {
  if (schema.contains("patternProperties") || schema.contains("propertyNames")) return false;
  if (schema.contains("additionalProperties")) return closed(schema);
  const OrderedJson* others = member_of(schema, "unevaluatedProperties");
  return strict && (others == nullptr || is_false(others));
}

bool is_object_alone(const OrderedJson& schema) {
  return schema.is_object() && alternatives(schema) == nullptr && !schema.contains("enum") &&
         !schema.contains("const") && types_of(schema, true) == std::vector<std::string>{"object"};
}

}  // namespace

const OrderedJson* SchemaExclusion::resolved(const OrderedJson& schema) const {
  const OrderedJson* at = &schema;
  for (int hops = 0; at != nullptr && hops < kMaxHops; ++hops) {
    if (!at->is_object()) return at;
    const OrderedJson* all = member_of(*at, "allOf");
    const OrderedJson* ref = member_of(*at, "$ref");
    if (ref != nullptr) {
      const auto pointer = schema_pointer(ref->get_ref<const std::string&>());
      at = pointer ? find(root_, *pointer) : nullptr;
    } else if (all != nullptr && all->size() == 1) {
      at = &all->front();
    } else {
      return at;
    }
  }
  return nullptr;
}

bool SchemaExclusion::within(bool (SchemaExclusion::*step)(const OrderedJson&, const OrderedJson&),
                             const OrderedJson& a, const OrderedJson& b) {
  if (depth_ >= kMaxProofDepth || --steps_ < 0) return false;
  ++depth_;
  const bool proved = (this->*step)(a, b);
  --depth_;
  return proved;
}

bool SchemaExclusion::holds(const OrderedJson& written, const OrderedJson& other) {
  return within(&SchemaExclusion::pair, written, other);
}

bool SchemaExclusion::rejects(const OrderedJson& schema, const OrderedJson& value) {
  return within(&SchemaExclusion::value, schema, value);
}

bool SchemaExclusion::pair(const OrderedJson& written, const OrderedJson& other) {
  const OrderedJson *a = resolved(written), *b = resolved(other);
  if (a == nullptr || b == nullptr) return false;
  if (!a->is_object() || !b->is_object()) return *a == false || *b == false;
  if (const OrderedJson* cases = alternatives(*a))
    return std::ranges::all_of(*cases, [&](const auto& one) { return holds(one, *b); });
  if (const OrderedJson* cases = alternatives(*b))
    return std::ranges::all_of(*cases, [&](const auto& one) { return holds(*a, one); });
  if (a->contains("allOf") || b->contains("allOf")) return false;
  OrderedJson one;
  if (const OrderedJson* values = listed(*a, one))
    return std::ranges::all_of(*values, [&](const auto& value) { return rejects(*b, value); });
  if (const OrderedJson* values = listed(*b, one))
    return std::ranges::all_of(*values, [&](const auto& value) { return rejects(*a, value); });
  return typed(*a, *b);
}

bool SchemaExclusion::typed(const OrderedJson& written, const OrderedJson& other) {
  for (const std::string& a : types_of(written, true))
    for (const std::string& b : types_of(other, false)) {
      if (a != b && !(numeric(a) && numeric(b))) continue;
      const bool apart = numeric(a)      ? below(written, other) || below(other, written)
                         : a == "string" ? lengths_differ(written, other, "minLength", "maxLength")
                         : a == "array"  ? arrays(written, other)
                                         : a == "object" && objects(written, other);
      if (!apart) return false;
    }
  return true;
}

bool SchemaExclusion::objects(const OrderedJson& written, const OrderedJson& other) {
  for (const std::string& name : required_of(written)) {
    const OrderedJson* mine = property(written, name);
    const OrderedJson* theirs = property(other, name);
    if (theirs == nullptr && closed(other)) return true;
    if (mine != nullptr && theirs != nullptr && holds(*mine, *theirs)) return true;
  }
  return written_closed(written, strict_) &&
         std::ranges::any_of(required_of(other), [&](const std::string& name) {
           return property(written, name) == nullptr;
         });
}

bool SchemaExclusion::arrays(const OrderedJson& written, const OrderedJson& other) {
  if (lengths_differ(written, other, "minItems", "maxItems")) return true;
  const OrderedJson *mine = member_of(written, "items"), *theirs = member_of(other, "items");
  return number_or(written, "minItems", 0) > 0 && mine != nullptr && theirs != nullptr &&
         !written.contains("prefixItems") && !other.contains("prefixItems") &&
         holds(*mine, *theirs);
}

// Proves that a value is invalid under a schema.
bool SchemaExclusion::value(const OrderedJson& schema, const OrderedJson& value) {
  const OrderedJson* at = resolved(schema);
  if (at == nullptr) return false;
  if (!at->is_object()) return *at == false;
  if (const OrderedJson* cases = alternatives(*at))
    return std::ranges::all_of(*cases, [&](const auto& one) { return rejects(one, value); });
  OrderedJson one;
  if (const OrderedJson* values = listed(*at, one))
    return std::ranges::none_of(*values, [&](const auto& known) { return equal(known, value); });
  if (at->contains("allOf")) return false;
  if (std::ranges::none_of(types_of(*at, false),
                           [&](const std::string& type) { return valid_type(value, type); }))
    return true;
  return value.is_object() && rejects_object(*at, value);
}

bool SchemaExclusion::rejects_object(const OrderedJson& schema, const OrderedJson& value) {
  for (const std::string& name : required_of(schema))
    if (!value.contains(name)) return true;
  for (const auto& [name, inner] : value.items()) {
    const OrderedJson* known = property(schema, name);
    if (known == nullptr ? closed(schema) : rejects(*known, inner)) return true;
  }
  return false;
}

std::optional<std::string> SchemaExclusion::tag(const OrderedJson& one, const OrderedJson& other) {
  const OrderedJson *a = resolved(one), *b = resolved(other);
  if (a == nullptr || b == nullptr || !is_object_alone(*a) || !is_object_alone(*b)) return {};
  const OrderedJson* properties = member_of(*a, "properties");
  if (properties == nullptr) return {};
  for (const auto& [name, mine] : properties->items()) {
    const OrderedJson *first = resolved(mine), *second = property(*b, name);
    if (second != nullptr) second = resolved(*second);
    OrderedJson values;
    if (first == nullptr || second == nullptr || !first->is_object() || !second->is_object() ||
        listed(*first, values) == nullptr || listed(*second, values) == nullptr)
      continue;
    if (holds(*first, *second)) return name;
  }
  return {};
}

}  // namespace valora::grammar
