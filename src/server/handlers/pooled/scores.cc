#include "server/handlers/handlers.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "server/handlers/caller.h"
#include "server/handlers/generation/answer.h"
#include "server/handlers/pooled/embeddings.h"
#include "server/openai/errors.h"
#include "server/openai/pair_requests.h"
#include "server/openai/retrieval_prompts.h"

namespace valora::server {
namespace {

bool compares_embeddings(const RetrievalCard& card) {
  return card.embedding.described && !(card.judge && card.judge->described);
}

// Log odds of "yes", and its probability among the two tokens.
double log_odds(const TokenOutput& token) { return token.top[0].logprob - token.top[1].logprob; }
double probability(double odds) { return 1 / (1 + std::exp(-odds)); }

SamplingParams judgement(const JudgeRecipe& judge) {
  SamplingParams sampling;
  sampling.max_tokens = 1;
  sampling.temperature = 0;
  sampling.repetition_penalty = 1;
  sampling.ignore_eos = true;
  sampling.logprob_token_ids = {judge.yes, judge.no};
  return sampling;
}

// Collects a score per pair.
class PairsAnswer : public Answer {
 public:
  PairsAnswer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange, AnswerHead head,
              const PairsBody& body, bool embeds)
      : Answer(std::move(service), std::move(exchange), std::move(head)),
        firsts_(body.first.size()),
        pairs_(body.second.size()),
        embeds_(embeds),
        use_activation_(body.use_activation) {
    if (embeds_)
      vectors_.resize(firsts_ + pairs_);
    else
      odds_.resize(pairs_);
  }

 protected:
  // Writes the answer. scores: one per pair.
  virtual void write(const std::vector<double>& scores) = 0;

 private:
  void on_output(size_t part, OutputChunk chunk) override {
    for (const TokenOutput& token : chunk.tokens)
      if (token.top.size() == 2) odds_[part] = log_odds(token);
  }
  void on_embedding(size_t part, std::vector<float> values) override {
    if (!keep(values.size() * sizeof(float))) return;
    normalize(values);
    vectors_[part] = std::move(values);
  }
  std::optional<double> score(size_t pair) const {
    if (!embeds_) {
      if (!odds_[pair]) return std::nullopt;
      return use_activation_ ? probability(*odds_[pair]) : *odds_[pair];
    }
    const auto &a = vectors_[firsts_ == 1 ? 0 : pair], &b = vectors_[firsts_ + pair];
    if (!a || !b) return std::nullopt;
    return std::inner_product(a->begin(), a->end(), b->begin(), 0.0);
  }
  void on_all_done() override {
    std::vector<double> scores;
    for (size_t i = 0; i < pairs_; ++i) {
      const std::optional<double> one = score(i);
      if (!one) return fail(internal("the engine ended the request without a score"));
      scores.push_back(*one);
    }
    write(scores);
  }

  const size_t firsts_, pairs_;
  const bool embeds_, use_activation_;
  std::vector<std::optional<std::vector<float>>> vectors_;  // the firsts', then the seconds'
  std::vector<std::optional<double>> odds_;
};

class ScoreAnswer final : public PairsAnswer {
 public:
  using PairsAnswer::PairsAnswer;

 private:
  void write(const std::vector<double>& scores) override {
    OrderedJson answer = answer_head(head_, "list");
    OrderedJson& data = answer["data"] = OrderedJson::array();
    for (size_t i = 0; i < scores.size(); ++i)
      data.push_back({{"index", i}, {"object", "score"}, {"score", scores[i]}});
    answer["usage"] = usage_json(usage());
    exchange_->respond({.body = to_text(answer)});
  }
};

class RerankAnswer final : public PairsAnswer {
 public:
  RerankAnswer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange,
               AnswerHead head, PairsBody& body, bool embeds)
      : PairsAnswer(std::move(service), std::move(exchange), std::move(head), body, embeds),
        top_n_(body.top_n) {
    if (!body.return_documents) return;
    for (const ContentItem& item : body.second)
      texts_.push_back(text_of(item) ? *text_of(item) : std::string());
  }

 private:
  void write(const std::vector<double>& scores) override {
    std::vector<size_t> order(scores.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return scores[i]; });
    if (top_n_) order.resize(std::min(order.size(), static_cast<size_t>(*top_n_)));
    OrderedJson answer = OrderedJson::object();
    answer["id"] = head_.id;
    answer["model"] = head_.model;
    const Usage used = usage();
    answer["usage"] = {{"prompt_tokens", used.prompt_tokens},
                       {"total_tokens", used.prompt_tokens + used.completion_tokens}};
    OrderedJson& results = answer["results"] = OrderedJson::array();
    for (const size_t i : order) {
      OrderedJson result = {{"index", i}, {"relevance_score", scores[i]}};
      // Pictures are known to the sender, and megabytes.
      if (!texts_.empty() && !texts_[i].empty()) result["document"] = {{"text", texts_[i]}};
      results.push_back(std::move(result));
    }
    exchange_->respond({.body = to_text(answer)});
  }

  const std::optional<int> top_n_;
  std::vector<std::string> texts_;  // of the documents; empty: not returned
};

Result<std::vector<Prompt>> judge_prompts(const PairsBody& body, const ModelCard& model,
                                          const RequestLimits& limits) {
  std::vector<Prompt> prompts;
  for (size_t i = 0; i < body.second.size(); ++i) {
    VALORA_TRY(prompt, judge_prompt(body.first[body.first.size() == 1 ? 0 : i], body.second[i],
                                    body.fields, *model.retrieval.judge, model.images, limits));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

// The folder's own prompts for queries and documents, where it has them.
ItemFields fields_of_side(const ItemFields& fields, const char* name,
                          const EmbeddingRecipe& recipe) {
  ItemFields out = fields;
  const auto known = [&](const auto& prompt) { return prompt.first == name; };
  if (!out.prompt_name && !out.instruction && std::ranges::any_of(recipe.prompts, known))
    out.prompt_name = name;
  return out;
}

Result<std::vector<Prompt>> pair_embedding_prompts(const PairsBody& body, const ModelCard& model,
                                                   const RequestLimits& limits) {
  const EmbeddingRecipe& recipe = model.retrieval.embedding;
  VALORA_TRY(prompts, embedding_prompts(body.first, fields_of_side(body.fields, "query", recipe),
                                        recipe, limits));
  ItemFields of_documents = fields_of_side(body.fields, "document", recipe);
  of_documents.instruction.reset();  // it says what queries look for
  VALORA_TRY(documents, embedding_prompts(body.second, of_documents, recipe, limits));
  std::ranges::move(documents, std::back_inserter(prompts));
  return prompts;
}

Status check_model(const RetrievalCard& card, bool embeds) {
  if (embeds) return check_embeds(card.embedding);
  if (!card.judge)
    return not_implemented(
        "this model cannot judge pairs: \"yes\" and \"no\" are not tokens of its vocabulary",
        "model");
  return {};
}

template <typename AnswerType>
void answer_pairs(const std::shared_ptr<Service>& service, const HttpRequest& request,
                  std::shared_ptr<Exchange> exchange, Result<PairsBody> body, const char* prefix) {
  if (!body.ok()) return exchange->respond(error_response(body.error()));
  const ModelCard& model = service->engine.model();
  const RequestLimits limits = service->request_limits(request);
  const bool embeds = compares_embeddings(model.retrieval);
  if (const Status known = check_model(model.retrieval, embeds); !known.ok())
    return exchange->respond(error_response(known.error()));
  const auto caller = caller_of(*service, request, body->target, body->sharing);
  if (!caller.ok()) return exchange->respond(refuse_caller(caller.error()));
  auto prompts =
      embeds ? pair_embedding_prompts(*body, model, limits) : judge_prompts(*body, model, limits);
  if (!prompts.ok()) return exchange->respond(error_response(prompts.error()));
  std::vector<GenerateRequest> parts;
  for (Prompt& prompt : *prompts) {
    GenerateRequest part{.id = request.id,
                         .client = service->client_of(request),
                         .prompt = std::move(prompt),
                         .truncate_prompt_tokens = body->truncate_prompt_tokens};
    if (embeds) {
      part.task = Task::kEmbed;
    } else {
      part.sampling = judgement(*model.retrieval.judge);
      part.head = "";  // the language model, whatever head the adapter has
    }
    parts.push_back(std::move(part));
  }
  set_caller(parts, body->sharing, *caller);
  AnswerHead head{prefix + request.id, std::time(nullptr), service->model_name_of(body->target)};
  const auto answer =
      std::make_shared<AnswerType>(service, std::move(exchange), std::move(head), *body, embeds);
  answer->start(std::move(body->target), std::move(parts), *caller);
}

}  // namespace

void handle_rerank(const std::shared_ptr<Service>& service, HttpRequest request,
                   std::shared_ptr<Exchange> exchange) {
  answer_pairs<RerankAnswer>(service, request, std::move(exchange), parse_rerank(request.body),
                             "rerank-");
}

void handle_score(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange) {
  answer_pairs<ScoreAnswer>(service, request, std::move(exchange), parse_score(request.body),
                            "score-");
}

}  // namespace valora::server
