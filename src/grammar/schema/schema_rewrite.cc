#include "grammar/schema/schema_rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "base/text/strings.h"
#include "grammar/schema/schema_exclusion.h"
#include "grammar/schema/schema_words.h"

namespace valora::grammar {
namespace {

constexpr int64_t kMaxValuesWritten = 100000;

Error ambiguous(const std::string& place, size_t a, size_t b) {
  return invalid(
      fmt::format("the schema at {} has cases {} and {} that may hold for the same value; give "
                  "each a required property with a value of its own, or use \"anyOf\"",
                  shortened(place, 300), a, b));
}

// True if xgrammar finds the target: it follows objects only, by names without escapes.
bool is_plain(const OrderedJson& root, const SchemaPointer& pointer) {
  const OrderedJson* at = &root;
  for (const std::string& part : pointer.parts) {
    if (!at->is_object() || part.empty()) return false;
    at = &at->at(part);
  }
  return !pointer.escaped;
}

class SchemaRewriter {
 public:
  SchemaRewriter(const OrderedJson& root, bool strict) : root_(root), proofs_(root, strict) {}

  Result<OrderedJson> run() {
    VALORA_CHECK(survey(root_, "#"));
    const std::set<const OrderedJson*> in_place = seen_;
    for (size_t i = 0; i < refs_.size(); ++i) VALORA_CHECK(survey_target(*refs_[i], in_place));
    if (!changes_) return root_;
    OrderedJson made = copy(root_);
    for (const auto& [target, name] : copies_) made["$defs"][name] = copy(*target);
    if (values_ > kMaxValuesWritten)
      return invalid(
          "the schema has too many references with escapes; give their targets names "
          "without them");
    return made;
  }

 private:
  // Proves the exclusions that "oneOf" requires, and collects the references.
  Status survey(const OrderedJson& schema, const std::string& place) {
    seen_.insert(&schema);
    if (!schema.is_object()) return {};
    for (const auto& [key, value] : schema.items()) {
      const std::string inner = place + "/" + shortened(key, 60);
      if (key == "$ref") refs_.push_back(&value);
      if (key == "oneOf") VALORA_CHECK(prove(value, inner));
      if (key == "oneOf") require_tag(value, schema);
      if (holds(kSchemas, key)) VALORA_CHECK(survey(value, inner));
      if (holds(kListsOfSchemas, key))
        for (size_t i = 0; i < value.size(); ++i)
          VALORA_CHECK(survey(value[i], fmt::format("{}/{}", inner, i)));
      if (holds(kMapsOfSchemas, key))
        for (const auto& [name, one] : value.items())
          VALORA_CHECK(survey(one, inner + "/" + shortened(name, 60)));
    }
    return {};
  }

  Status prove(const OrderedJson& cases, const std::string& place) {
    changes_ = true;
    for (size_t b = 0; b < cases.size(); ++b)
      for (size_t a = 0; a < b; ++a) {
        if (proofs_.holds(cases[a], cases[b]) && proofs_.holds(cases[b], cases[a])) continue;
        const auto tag = proofs_.tag(cases[a], cases[b]);
        if (!tag) return ambiguous(place, a, b);
        tags_[proofs_.resolved(cases[a])].insert(*tag);
        tags_[proofs_.resolved(cases[b])].insert(*tag);
      }
    return {};
  }

  // Readers of OpenAPI's "discriminator" look for its property, whether cases require it or not.
  void require_tag(const OrderedJson& cases, const OrderedJson& schema) {
    const OrderedJson discriminator = schema.value("discriminator", OrderedJson());
    if (!discriminator.is_object()) return;
    const OrderedJson name = discriminator.value("propertyName", OrderedJson());
    for (const OrderedJson& one : cases) {
      const OrderedJson* known = proofs_.resolved(one);
      if (name.is_string() && known != nullptr && known->is_object() &&
          known->value("properties", OrderedJson::object()).contains(name.get<std::string>()))
        tags_[known].insert(name.get<std::string>());
    }
  }

  Status survey_target(const OrderedJson& ref, const std::set<const OrderedJson*>& in_place) {
    const std::string& text = ref.get_ref<const std::string&>();
    const auto pointer = schema_pointer(text);
    const OrderedJson* target = pointer ? find(root_, *pointer) : nullptr;
    if (target == nullptr) return invalid(fmt::format("the schema has no {}", shortened(text, 60)));
    if (is_plain(root_, *pointer) && in_place.contains(target)) return {};
    changes_ = true;
    copies_.try_emplace(target, new_name());
    renamed_[&ref] = "#/$defs/" + copies_.at(target);
    return seen_.contains(target) ? Status() : survey(*target, text);
  }

  std::string new_name() const {
    std::string name = fmt::format("target{}", copies_.size());
    while (root_.contains("$defs") && root_["$defs"].contains(name)) name += '_';
    return name;
  }

  OrderedJson copy(const OrderedJson& schema) {
    values_ += 1 + static_cast<int64_t>(schema.size());
    if (values_ > kMaxValuesWritten) return {};
    if (!schema.is_object()) return schema;
    OrderedJson made = OrderedJson::object();
    for (const auto& [key, value] : schema.items())
      made[key == "oneOf" ? "anyOf" : key] = copy_member(key, value);
    if (const auto tags = tags_.find(&schema); tags != tags_.end())
      for (const std::string& tag : tags->second) require(made, tag);
    return made;
  }

  OrderedJson copy_member(const std::string& key, const OrderedJson& value) {
    if (key == "$ref") return renamed_.contains(&value) ? OrderedJson(renamed_[&value]) : value;
    if (holds(kSchemas, key)) return copy(value);
    const bool list = holds(kListsOfSchemas, key);
    if (!list && !holds(kMapsOfSchemas, key)) {
      values_ += static_cast<int64_t>(value.size());
      return value;
    }
    OrderedJson made = list ? OrderedJson::array() : OrderedJson::object();
    for (const auto& [name, one] : value.items())
      if (list)
        made.push_back(copy(one));
      else
        made[name] = copy(one);
    return made;
  }

  static void require(OrderedJson& schema, const std::string& name) {
    OrderedJson& names = schema["required"];
    if (std::ranges::find(names, OrderedJson(name)) == names.end()) names.push_back(name);
  }

  const OrderedJson& root_;
  SchemaExclusion proofs_;
  bool changes_ = false;
  int64_t values_ = 0;
  std::set<const OrderedJson*> seen_;
  std::vector<const OrderedJson*> refs_;                        // the "$ref" strings
  std::map<const OrderedJson*, std::set<std::string>> tags_;    // properties to require, by schema
  std::map<const OrderedJson*, std::string> copies_, renamed_;  // target to name, reference to text
};

}  // namespace

Result<std::string> rewritten_schema(const std::string& schema, bool strict) {
  if (schema.find("oneOf") == std::string::npos && schema.find("$ref") == std::string::npos &&
      schema.find("\\u") == std::string::npos)
    return schema;
  const OrderedJson root = OrderedJson::parse(schema);
  VALORA_TRY(made, SchemaRewriter(root, strict).run());
  return made == root ? schema : made.dump();
}

namespace {

// With a style other than "json", the tag contains no JSON.
bool is_json(const OrderedJson& format) {
  const auto style = format.find("style");
  return style == format.end() || style->is_null() || *style == "json";
}

Status rewrite_schemas_in(OrderedJson& tag, JsonSpacing spacing) {
  if (!tag.is_structured()) return {};
  const auto schema = tag.is_object() ? tag.find("json_schema") : tag.end();
  const bool holds = schema != tag.end() && tag.value("type", OrderedJson()) == "json_schema";
  if (holds) {
    VALORA_TRY(text, rewritten_schema(schema->dump(), /*strict=*/true));
    *schema = OrderedJson::parse(text);
    const bool given = !tag.value("max_whitespace_cnt", OrderedJson()).is_null();
    const auto most = whitespace_of(spacing);
    if (is_json(tag) && most && (!given || spacing == JsonSpacing::kCompact))
      tag["max_whitespace_cnt"] = *most;
    return {};
  }
  for (OrderedJson& part : tag) VALORA_CHECK(rewrite_schemas_in(part, spacing));
  return {};
}

struct Rewriter {
  template <typename Other>
  Result<GrammarSpec> operator()(const Other& spec) const {
    return GrammarSpec(spec);
  }
  Result<GrammarSpec> operator()(const JsonSchemaSpec& spec) const {
    VALORA_TRY(text, rewritten_schema(spec.schema, spec.strict));
    return GrammarSpec(JsonSchemaSpec{std::move(text), spec.strict, spec.spacing});
  }
  Result<GrammarSpec> operator()(const StructuralTagSpec& spec) const {
    OrderedJson tag = OrderedJson::parse(spec.json);
    VALORA_CHECK(rewrite_schemas_in(tag, spec.spacing));
    return GrammarSpec(StructuralTagSpec{tag.dump(), spec.spacing});
  }
};

}  // namespace

Result<GrammarSpec> rewritten(const GrammarSpec& spec) { return std::visit(Rewriter{}, spec); }

}  // namespace valora::grammar
