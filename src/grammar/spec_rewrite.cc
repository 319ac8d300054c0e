#include "grammar/spec_rewrite.h"

#include <utility>

#include "base/json.h"
#include "grammar/schema_rewrite.h"
#include "grammar/spacing.h"

namespace valora::grammar {
namespace {

// A style other than JSON's own has no JSON between its marks.
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
    if (is_json(tag) && (!given || spacing == JsonSpacing::kCompact))
      tag["max_whitespace_cnt"] = whitespace_of(spacing);
    return {};
  }
  for (OrderedJson& part : tag) VALORA_CHECK(rewrite_schemas_in(part, spacing));
  return {};
}

struct Rewriter {
  JsonSpacing spacing;

  template <typename Other>
  Result<GrammarSpec> operator()(const Other& spec) const {
    return GrammarSpec(spec);
  }
  Result<GrammarSpec> operator()(const JsonSchemaSpec& spec) const {
    VALORA_TRY(text, rewritten_schema(spec.schema, spec.strict));
    return GrammarSpec(JsonSchemaSpec{std::move(text), spec.strict});
  }
  Result<GrammarSpec> operator()(const StructuralTagSpec& spec) const {
    OrderedJson tag = OrderedJson::parse(spec.json);
    VALORA_CHECK(rewrite_schemas_in(tag, spacing));
    return GrammarSpec(StructuralTagSpec{tag.dump()});
  }
};

}  // namespace

Result<GrammarSpec> rewritten(const GrammarSpec& spec, JsonSpacing spacing) {
  return std::visit(Rewriter{spacing}, spec);
}

}  // namespace valora::grammar
