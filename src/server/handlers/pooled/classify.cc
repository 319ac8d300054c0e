#include "server/handlers/handlers.h"

#include <ctime>

#include "server/handlers/caller.h"
#include "server/handlers/generation/answer.h"
#include "server/openai/errors.h"
#include "server/openai/requests.h"

namespace valora::server {
namespace {

OrderedJson classification_json(size_t index, const Classification& classification,
                                bool use_activation) {
  OrderedJson values = OrderedJson::array();
  for (const float value : use_activation ? classification.probs : classification.logits)
    values.push_back(value);
  const size_t best = static_cast<size_t>(classification.best);
  OrderedJson out = OrderedJson::object();
  out["index"] = index;
  out["label"] = best < classification.labels.size() ? OrderedJson(classification.labels[best])
                                                     : OrderedJson();
  out["probs"] = std::move(values);
  out["num_classes"] = classification.logits.size();
  out["head"] = classification.head;
  return out;
}

class ClassifyAnswer final : public Answer {
 public:
  ClassifyAnswer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange,
                 AnswerHead head, size_t inputs, bool use_activation)
      : Answer(std::move(service), std::move(exchange), std::move(head)),
        use_activation_(use_activation),
        results_(inputs) {}

 private:
  void on_output(size_t, OutputChunk) override {}
  void on_classification(size_t part, Classification classification) override {
    results_[part] = std::move(classification);
  }

  void on_all_done() override {
    OrderedJson answer = answer_head(head_, "list");
    OrderedJson& data = answer["data"] = OrderedJson::array();
    for (size_t i = 0; i < results_.size(); ++i) {
      if (!results_[i])
        return fail(internal("the engine ended the request without a classification"));
      data.push_back(classification_json(i, *results_[i], use_activation_));
    }
    answer["usage"] = usage_json(usage());
    exchange_->respond({.body = to_text(answer)});
  }

  const bool use_activation_;
  std::vector<std::optional<Classification>> results_;
};

}  // namespace

void handle_classify(const std::shared_ptr<Service>& service, HttpRequest request,
                     std::shared_ptr<Exchange> exchange) {
  auto body = parse_classify(request.body, service->request_limits(request));
  if (!body.ok()) return exchange->respond(error_response(body.error()));
  const auto caller = caller_of(*service, request, body->target, body->sharing);
  if (!caller.ok()) return exchange->respond(refuse_caller(caller.error()));
  std::vector<GenerateRequest> parts;
  for (Prompt& prompt : body->prompts)
    parts.push_back({.id = request.id,
                     .client = service->client_of(request),
                     .prompt = std::move(prompt),
                     .task = Task::kClassify,
                     .truncate_prompt_tokens = body->truncate_prompt_tokens});
  set_caller(parts, body->sharing, *caller);
  AnswerHead head{"classify-" + request.id, std::time(nullptr),
                  service->model_name_of(body->target)};
  auto answer = std::make_shared<ClassifyAnswer>(service, std::move(exchange), std::move(head),
                                                 parts.size(), body->use_activation);
  answer->start(std::move(body->target), std::move(parts), *caller);
}

}  // namespace valora::server
