#include "server/handlers/handlers.h"

#include <utility>

#include "api/media_limits.h"
#include "server/openai/errors.h"
#include "server/openai/json_text.h"
#include "server/openai/requests.h"

namespace valora::server {
namespace {

// A model that the user may not use is an error, like an unknown name.
Status check_model(const Service& service, const HttpRequest& request, const Target& target) {
  const std::string_view name = service.adapter_of(target.model);
  if (name.empty()) return {};
  const ServedUser* const user = service.user_of(request);
  if (service.engine.adapter(std::string(name)) && (user == nullptr || user->may_ask(name)))
    return {};
  return model_not_found(target.model);
}

std::string tokens_json(const Service& service, const std::vector<int32_t>& ids) {
  OrderedJson out = OrderedJson::object();
  out["count"] = ids.size();
  out["max_model_len"] = service.engine.model().max_model_len;
  out["tokens"] = ids;
  out["token_strs"] = nullptr;
  return to_text(out);
}

Result<std::string> detokenize(const Service& service, const HttpRequest& request) {
  VALORA_TRY(body, parse_detokenize(request.body));
  VALORA_CHECK(check_model(service, request, body.target));
  VALORA_TRY(text, service.engine.detokenize(body.tokens, service.adapters_of(body.target)));
  return to_text({{"prompt", std::move(text)}});
}

void respond(Exchange& exchange, Result<std::string> json) {
  exchange.respond(json.ok() ? HttpResponse{.body = std::move(*json)}
                             : error_response(json.error()));
}

bool has_media(const Prompt& prompt) {
  const auto* chat = std::get_if<ChatPrompt>(&prompt);
  if (!chat) return false;
  const MediaCounts media = count_media(*chat);
  return media.images + media.videos > 0;
}

// Answers with the tokens of a prompt prepared by the engine, including media.
class TokenizeSink final : public ResponseSink {
 public:
  TokenizeSink(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange)
      : service_(std::move(service)), exchange_(std::move(exchange)) {}

  void on_output(OutputChunk) override {}
  void on_done(const FinalInfo& info) override { answer_with(info.prompt_token_ids); }
  void on_error(const Error& error) override { answer_with(error); }

 private:
  // Sinks must not throw: if memory for the answer runs out, none is sent.
  template <typename Ids>
  void answer_with(const Ids& ids) const noexcept {
    try {
      answer(ids);
    } catch (const std::exception&) {
      exchange_->abort();
    }
  }
  void answer(const Result<std::vector<int32_t>>& ids) const {
    exchange_->post([service = service_, exchange = exchange_, ids] {
      // Only a server that is stopping cancels requests on its own.
      if (!ids.ok() && ids.error().code == ErrorCode::kCancelled) return exchange->abort();
      respond(*exchange, ids.ok() ? tokens_json(*service, *ids) : Result<std::string>(ids.error()));
    });
  }

  const std::shared_ptr<Service> service_;
  const std::shared_ptr<Exchange> exchange_;
};

// The number of media tokens is only known after preparation, so the engine prepares the prompt as
// for any other request.
void tokenize_media(const std::shared_ptr<Service>& service, const HttpRequest& request,
                    std::shared_ptr<Exchange> exchange, TokenizeBody body) {
  const auto sink = std::make_shared<TokenizeSink>(service, exchange);
  const auto handle = service->engine.submit({.id = request.id,
                                              .client = service->client_of(request),
                                              .prompt = std::move(body.prompt),
                                              .adapters = service->adapters_of(body.target),
                                              .task = Task::kTokenize},
                                             sink);
  if (!handle.ok()) return sink->on_error(handle.error());
  exchange->on_disconnect([service, handle = *handle] { service->engine.cancel(handle); });
}

}  // namespace

void handle_tokenize(const std::shared_ptr<Service>& service, HttpRequest request,
                     std::shared_ptr<Exchange> exchange) {
  auto body = parse_tokenize(request.body, service->request_limits(request));
  if (!body.ok()) return respond(*exchange, body.error());
  if (const Status known = check_model(*service, request, body->target); !known.ok())
    return respond(*exchange, known.error());
  if (has_media(body->prompt))
    return tokenize_media(service, request, std::move(exchange), std::move(*body));
  const auto ids = service->engine.tokenize(body->prompt, body->add_special_tokens,
                                            service->adapters_of(body->target));
  respond(*exchange, ids.ok() ? tokens_json(*service, *ids) : Result<std::string>(ids.error()));
}

void handle_detokenize(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange) {
  respond(*exchange, detokenize(*service, request));
}

void handle_tokenizer_info(const std::shared_ptr<Service>& service, HttpRequest,
                           std::shared_ptr<Exchange> exchange) {
  exchange->respond({.body = *service->options.tokenizer_info});
}

}  // namespace valora::server
