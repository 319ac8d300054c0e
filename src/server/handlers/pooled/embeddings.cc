#include "server/handlers/pooled/embeddings.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <ctime>

#include "base/text/base64.h"
#include "server/handlers/caller.h"
#include "server/handlers/generation/answer.h"
#include "server/openai/errors.h"
#include "server/openai/requests.h"

namespace valora::server {
namespace {

// Scales to unit length; a zero vector stays zero.
void normalize(std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * value;
  if (squares == 0) return;
  for (float& value : values) value = static_cast<float>(value / std::sqrt(squares));
}

OrderedJson embedding_json(const std::vector<float>& values, bool base64) {
  static_assert(std::endian::native == std::endian::little);
  if (!base64) return values;
  return encode_base64(
      {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

// Numbers can be left out of embeddings of models that were trained for it alone.
Status check_size(const std::optional<int64_t>& asked, int64_t own) {
  if (!asked || *asked == own) return {};
  return invalid(
      fmt::format("\"dimensions\" is {}, but embeddings of this model have {} numbers, and it was "
                  "not trained to be cut; leave the field out",
                  *asked, own),
      "dimensions");
}

class EmbeddingsAnswer final : public Answer {
 public:
  EmbeddingsAnswer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange,
                   AnswerHead head, const EmbedBody& body)
      : Answer(std::move(service), std::move(exchange), std::move(head)),
        base64_(body.base64),
        normalize_(body.normalize),
        results_(body.prompts.size()) {}

 private:
  void on_output(size_t, OutputChunk) override {}
  void on_embedding(size_t part, std::vector<float> values) override {
    if (!keep(values.size() * sizeof(float))) return;
    if (normalize_) normalize(values);
    results_[part] = std::move(values);
  }

  void on_all_done() override {
    OrderedJson answer = answer_head(head_, "list");
    OrderedJson& data = answer["data"] = OrderedJson::array();
    for (size_t i = 0; i < results_.size(); ++i) {
      if (!results_[i]) return fail(internal("the engine ended the request without an embedding"));
      OrderedJson item = {{"index", i}, {"object", "embedding"}};
      item["embedding"] = embedding_json(*results_[i], base64_);
      data.push_back(std::move(item));
    }
    answer["usage"] = usage_json(usage());
    exchange_->respond({.body = to_text(answer)});
  }

  const bool base64_, normalize_;
  std::vector<std::optional<std::vector<float>>> results_;
};

}  // namespace

void handle_embeddings(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange) {
  auto body = parse_embed(request.body, service->request_limits(request));
  if (!body.ok()) return exchange->respond(error_response(body.error()));
  if (const Status size = check_size(body->dimensions, service->engine.model().embedding_size);
      !size.ok())
    return exchange->respond(error_response(size.error()));
  const auto caller = caller_of(*service, request, body->target, body->sharing);
  if (!caller.ok()) return exchange->respond(refuse_caller(caller.error()));
  AnswerHead head{"embd-" + request.id, std::time(nullptr), service->model_name_of(body->target)};
  const auto answer =
      std::make_shared<EmbeddingsAnswer>(service, std::move(exchange), std::move(head), *body);
  std::vector<GenerateRequest> parts;
  for (Prompt& prompt : body->prompts)
    parts.push_back({.id = request.id,
                     .client = service->client_of(request),
                     .prompt = std::move(prompt),
                     .task = Task::kEmbed,
                     .truncate_prompt_tokens = body->truncate_prompt_tokens});
  set_caller(parts, body->sharing, *caller);
  answer->start(std::move(body->target), std::move(parts), *caller);
}

}  // namespace valora::server
