#include "server/handlers/pooled/embeddings.h"

#include <fmt/format.h>

#include <algorithm>
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

OrderedJson embedding_json(const std::vector<float>& values, bool base64) {
  static_assert(std::endian::native == std::endian::little);
  if (!base64) return values;
  return encode_base64(
      {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

// Numbers can be left out of embeddings of models that were trained for it alone.
Status check_size(const std::optional<int64_t>& asked, const ModelCard& model) {
  const int64_t own = model.embedding_size;
  const EmbeddingRecipe& recipe = model.retrieval.embedding;
  if (!asked || *asked == own) return {};
  if (recipe.any_size && *asked > 0 && *asked < own) return {};
  if (std::ranges::binary_search(recipe.sizes, *asked)) return {};
  const std::string others =
      !recipe.sizes.empty() ? fmt::format("or can be cut to {}", fmt::join(recipe.sizes, ", "))
      : recipe.any_size     ? "or fewer"
                            : "and its config.json does not say that they can be cut "
                              "(\"is_matryoshka\"); leave the field out";
  return invalid(
      fmt::format("\"dimensions\" is {}, but embeddings of this model have {} numbers, {}", *asked,
                  own, others),
      "dimensions");
}

Status check_embeddings(const EmbedBody& body, const ModelCard& model) {
  VALORA_CHECK(check_embeds(model.retrieval.embedding));
  return check_size(body.dimensions, model);
}

// A text without the tokens that the tokenizer puts around it.
Status strip_special_tokens(const Service& service, const Target& target, Prompt& prompt) {
  if (!std::holds_alternative<std::string>(prompt)) return {};
  VALORA_TRY(ids, service.engine.tokenize(prompt, /*add_special_tokens=*/false,
                                          service.adapters_of(target)));
  prompt = std::move(ids);
  return {};
}

Result<std::vector<Prompt>> prompts_of(EmbedBody& body, const Service& service,
                                       const RequestLimits& limits) {
  const EmbeddingRecipe& recipe = service.engine.model().retrieval.embedding;
  std::vector<Prompt> prompts;
  if (body.conversation) {
    body.conversation->add_special_tokens =
        body.fields.add_special_tokens.value_or(recipe.described);
    prompts.emplace_back(std::move(*body.conversation));
    return prompts;
  }
  VALORA_TRY(of_items, embedding_prompts(body.items, body.fields, recipe, limits));
  if (!body.fields.add_special_tokens.value_or(true))
    for (Prompt& prompt : of_items)
      VALORA_CHECK(strip_special_tokens(service, body.target, prompt));
  return of_items;
}

class EmbeddingsAnswer final : public Answer {
 public:
  EmbeddingsAnswer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange,
                   AnswerHead head, const EmbedBody& body, size_t count)
      : Answer(std::move(service), std::move(exchange), std::move(head)),
        base64_(body.base64),
        normalize_(body.normalize),
        dimensions_(body.dimensions),
        results_(count) {}

 private:
  void on_output(size_t, OutputChunk) override {}
  void on_embedding(size_t part, std::vector<float> values) override {
    if (!keep(values.size() * sizeof(float))) return;
    if (dimensions_) values.resize(static_cast<size_t>(*dimensions_));
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
  const std::optional<int64_t> dimensions_;
  std::vector<std::optional<std::vector<float>>> results_;
};

}  // namespace

Status check_embeds(const EmbeddingRecipe& recipe) {
  if (recipe.refusal.empty()) return {};
  return not_implemented("this model's embeddings are not supported: " + recipe.refusal, "model");
}

void normalize(std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * value;
  if (squares == 0) return;
  for (float& value : values) value = static_cast<float>(value / std::sqrt(squares));
}

void handle_embeddings(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange) {
  const RequestLimits limits = service->request_limits(request);
  auto body = parse_embed(request.body, limits);
  if (!body.ok()) return exchange->respond(error_response(body.error()));
  if (const Status known = check_embeddings(*body, service->engine.model()); !known.ok())
    return exchange->respond(error_response(known.error()));
  const auto caller = caller_of(*service, request, body->target, body->sharing);
  if (!caller.ok()) return exchange->respond(refuse_caller(caller.error()));
  auto prompts = prompts_of(*body, *service, limits);
  if (!prompts.ok()) return exchange->respond(error_response(prompts.error()));
  AnswerHead head{"embd-" + request.id, std::time(nullptr), service->model_name_of(body->target)};
  const auto answer = std::make_shared<EmbeddingsAnswer>(service, std::move(exchange),
                                                         std::move(head), *body, prompts->size());
  std::vector<GenerateRequest> parts;
  for (Prompt& prompt : *prompts)
    parts.push_back({.id = request.id,
                     .client = service->client_of(request),
                     .prompt = std::move(prompt),
                     .task = Task::kEmbed,
                     .truncate_prompt_tokens = body->truncate_prompt_tokens});
  set_caller(parts, body->sharing, *caller);
  answer->start(std::move(body->target), std::move(parts), *caller);
}

}  // namespace valora::server
