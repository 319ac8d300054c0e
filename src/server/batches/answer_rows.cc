#include "server/batches/answer_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json/json.h"
#include "server/openai/json_text.h"

namespace valora::server {
namespace {

std::string json_text(std::string_view value) { return to_text(OrderedJson(std::string(value))); }

// One line of JSON: the body if it is one, else its text as a string.
std::string body_text(const std::string& body) {
  if (!body.empty() && body.find('\n') == body.npos && Json::accept(body)) return body;
  const Json parsed = Json::parse(body, nullptr, false);
  return parsed.is_discarded() ? json_text(body) : parsed.dump();
}

std::string row_head(std::string_view custom_id) {
  return fmt::format(R"({{"id":"batch_req_{}","custom_id":{})", request_id_from({}),
                     json_text(custom_id));
}

}  // namespace

std::string answer_row(std::string_view custom_id, std::string_view request_id,
                       const HttpResponse& response) {
  return fmt::format(
      "{},\"response\":{{\"status_code\":{},\"request_id\":{},\"body\":{}}},\"error\":null}}\n",
      row_head(custom_id), response.status, json_text(request_id), body_text(response.body));
}

std::string failure_row(std::string_view custom_id, std::string_view code,
                        std::string_view message) {
  return fmt::format("{},\"response\":null,\"error\":{{\"code\":{},\"message\":{}}}}}\n",
                     row_head(custom_id), json_text(code), json_text(message));
}

Result<std::string> custom_id_of(std::string_view row) {
  VALORA_TRY(json, parse_json(row, "the row",
                              {.max_bytes = SIZE_MAX, .max_depth = 128, .max_values = SIZE_MAX}));
  if (!json.is_object()) return invalid("the row is not a JSON object");
  return required_field<std::string>(json, "custom_id");
}

}  // namespace valora::server
