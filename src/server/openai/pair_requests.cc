#include "server/openai/pair_requests.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "server/openai/fields.h"
#include "server/openai/unsupported_fields.h"

namespace valora::server {
namespace {

// The names of the two sides.
struct Sides {
  const char *first, *second;
};
constexpr std::array kSides = {Sides{"text_1", "text_2"}, Sides{"data_1", "data_2"},
                               Sides{"queries", "documents"}};

Result<PairsBody> parse_pairs(Json& body, const Sides& sides, const char* path) {
  VALORA_CHECK(refuse_fields(body, path));
  PairsBody out;
  VALORA_TRY(target, parse_target(body));
  VALORA_TRY(sharing, parse_sharing(body));
  VALORA_TRY(fields, parse_item_fields(body));
  VALORA_TRY(truncate, parse_truncation(body));
  VALORA_TRY(softmax, flag(body, "softmax", true));  // vLLM's older names
  VALORA_TRY(activation, flag(body, "activation", softmax));
  VALORA_TRY(use_activation, flag(body, "use_activation", activation));
  VALORA_TRY(first, parse_items(body, sides.first, /*ids=*/false));
  VALORA_TRY(second, parse_items(body, sides.second, /*ids=*/false));
  if (first.size() != 1 && first.size() != second.size())
    return invalid(fmt::format("\"{}\" must be one item, or as many as \"{}\": {}, not {}",
                               sides.first, sides.second, second.size(), first.size()),
                   sides.first);
  VALORA_CHECK(check_rendering(fields, {first, second}));
  out.target = std::move(target);
  out.sharing = std::move(sharing);
  out.fields = std::move(fields);
  out.truncate_prompt_tokens = truncate;
  out.use_activation = use_activation;
  out.first = std::move(first);
  out.second = std::move(second);
  return out;
}

}  // namespace

Result<PairsBody> parse_rerank(std::string_view text) {
  VALORA_TRY(body, parse_body(text));
  if (member(body, "query").is_array()) return invalid("\"query\" must be one item", "query");
  if (!member(body, "documents").is_null() && !body["documents"].is_array())
    return invalid("\"documents\" must be a list", "documents");
  VALORA_TRY(top_n, integer_in(body, "top_n", 0, INT32_MAX));  // 0: all, as in vLLM
  VALORA_TRY(return_documents, flag(body, "return_documents", true));
  VALORA_TRY(out, parse_pairs(body, {"query", "documents"}, "/rerank"));
  if (top_n.value_or(0) > 0) out.top_n = top_n;
  out.return_documents = return_documents;
  return out;
}

Result<PairsBody> parse_score(std::string_view text) {
  VALORA_TRY(body, parse_body(text));
  for (const Sides& sides : kSides)
    if (body.contains(sides.first)) return parse_pairs(body, sides, "/score");
  return invalid("\"text_1\" is missing", "text_1");
}

}  // namespace valora::server
