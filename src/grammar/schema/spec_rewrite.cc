#include "grammar/schema/spec_rewrite.h"

#include <utility>

#include "base/json/json.h"
#include "grammar/schema/schema_rewrite.h"
#include "grammar/spacing.h"

namespace valora::grammar {
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
