#include "generator/evaluator.h"

#include <algorithm>
#include <chrono>

#include "base/quantile.h"
#include "generator/data/box_text.h"
#include "generator/engine_requests.h"

namespace valora::generator {
namespace {

// The head that answers; empty: the language model.
Result<std::string> choose_head(const Engine& engine, const Task& task,
                                const EvaluationOptions& options) {
  if (options.adapter.empty()) return std::string();
  const auto card = engine.adapter(options.adapter);
  if (!card) return not_found("adapter " + options.adapter + " is not loaded", "adapter");
  if (!options.use_head || !task.head) return std::string();
  const bool has = std::ranges::any_of(
      card->heads, [&](const auto& head) { return head.first == task.head->name; });
  return has ? task.head->name : std::string();
}

// Boxes in a family's own notation are longer than in the tasks'.
constexpr int kBoxAnswerTokens = 1024;

bool asks_for_boxes(const EvaluationOptions& options) {
  return options.constraint && options.constraint->kind == AnswerConstraint::Kind::kBoxes;
}

// The most tokens of an answer.
int most_tokens(const Engine& engine, const Task& task, const EvaluationOptions& options) {
  if (!asks_for_boxes(options)) return task.max_answer_tokens;
  const int fitting = std::min(kBoxAnswerTokens, engine.model().max_model_len / 2);
  return std::max(task.max_answer_tokens, fitting);
}

GenerateRequest request_of(const Engine& engine, const Task& task, const EvaluationOptions& options,
                           const std::string& head, Prompt prompt) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  if (!options.adapter.empty()) request.adapters.push_back({options.adapter, 1});
  request.sampling.max_tokens = most_tokens(engine, task, options);
  request.sampling.temperature = 0;
  request.task = head.empty() ? valora::Task::kGenerate : valora::Task::kClassify;
  request.head = head;
  request.constraint = options.constraint;
  return request;
}

Prediction prediction_of(const EngineAnswer& answer, bool multi_label) {
  Prediction prediction{answer.text, {}};
  if (!answer.classification) return prediction;
  const Classification& c = *answer.classification;
  for (size_t i = 0; i < c.labels.size(); ++i)
    if (multi_label ? c.probs[i] >= kLabelHolds : static_cast<int>(i) == c.best)
      prediction.labels.push_back(c.labels[i]);
  return prediction;
}

void describe(const std::vector<EngineAnswer>& answers, bool multi_label, Evaluation& evaluation) {
  std::vector<double> latencies;
  for (const EngineAnswer& answer : answers) {
    evaluation.predictions.push_back(prediction_of(answer, multi_label));
    evaluation.prompt_tokens += answer.usage.prompt_tokens;
    evaluation.completion_tokens += answer.usage.completion_tokens;
    latencies.push_back(answer.seconds);
  }
  std::ranges::sort(latencies);
  evaluation.latency_p50 = quantile(latencies, 0.5);
  evaluation.latency_p90 = quantile(latencies, 0.9);
}

}  // namespace

Result<Evaluation> evaluate(Engine& engine, const Task& task, std::span<const Sample> samples,
                            const EvaluationOptions& options) {
  if (samples.empty()) return invalid("task " + task.name + " has no samples to evaluate");
  VALORA_TRY(head, choose_head(engine, task, options));
  if (options.constraint && !head.empty())
    return invalid("task " + task.name + " is answered by a head, whose form cannot be chosen; " +
                       "--no-head asks the language model",
                   options.constraint->param);
  EngineRequests requests;
  requests.count = static_cast<int>(samples.size());
  requests.concurrency = options.concurrency;
  requests.make = [&](int i) -> Result<GenerateRequest> {
    VALORA_TRY(prompt, prompt_of(samples[i]));
    return request_of(engine, task, options, head, std::move(prompt));
  };
  requests.name = [&](int i) { return samples[i].origin; };
  requests.progress = options.progress;
  requests.stop = options.stop;

  const auto begin = std::chrono::steady_clock::now();
  VALORA_TRY(answers, ask_all(engine, requests));
  Evaluation evaluation;
  evaluation.head = head;
  evaluation.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  describe(answers, task.head && task.head->multi_label, evaluation);
  if (asks_for_boxes(options))
    for (Prediction& prediction : evaluation.predictions) {
      VALORA_TRY(boxes, read_box_answer(prediction.text));
      prediction.boxes = std::move(boxes);
    }
  VALORA_TRY(scored, score(task, samples, evaluation.predictions));
  evaluation.score = std::move(scored);
  evaluation.confusion = confusion(task, samples, evaluation.predictions);
  return evaluation;
}

}  // namespace valora::generator
