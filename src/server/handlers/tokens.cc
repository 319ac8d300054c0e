#include "server/handlers/tokens.h"

#include "api/find_adapter.h"
#include "server/openai/errors.h"
#include "server/openai/json_text.h"
#include "server/openai/requests.h"

namespace valora::server {
namespace {

// Adapters share the base model's tokenizer, but an unknown name is still an error.
Status check_model(const Service& service, const Target& target) {
  const std::string_view name = service.adapter_of(target.model);
  if (name.empty()) return {};
  if (find_adapter(service.engine, name)) return {};
  return model_not_found(target.model);
}

Result<std::string> tokenize(const Service& service, const HttpRequest& request) {
  VALORA_TRY(body, parse_tokenize(request.body, service.engine.model().media_limits));
  VALORA_CHECK(check_model(service, body.target));
  VALORA_TRY(ids, service.engine.tokenize(body.prompt, body.add_special_tokens));
  OrderedJson out;
  out["count"] = ids.size();
  out["max_model_len"] = service.engine.model().max_model_len;
  out["tokens"] = ids;
  out["token_strs"] = nullptr;
  return to_text(out);
}

Result<std::string> detokenize(const Service& service, const HttpRequest& request) {
  VALORA_TRY(body, parse_detokenize(request.body));
  VALORA_CHECK(check_model(service, body.target));
  VALORA_TRY(text, service.engine.detokenize(body.tokens));
  return to_text({{"prompt", std::move(text)}});
}

void respond(Exchange& exchange, Result<std::string> json) {
  exchange.respond(json.ok() ? HttpResponse{.body = std::move(*json)}
                             : error_response(json.error()));
}

}  // namespace

void handle_tokenize(const std::shared_ptr<Service>& service, HttpRequest request,
                     std::shared_ptr<Exchange> exchange) {
  respond(*exchange, tokenize(*service, request));
}

void handle_detokenize(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange) {
  respond(*exchange, detokenize(*service, request));
}

}  // namespace valora::server
