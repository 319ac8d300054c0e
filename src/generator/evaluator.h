// Evaluates an adapter or the base model on a task's samples through the serving engine (VaLoRA
// §4.2.1).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "api/engine.h"
#include "base/result.h"
#include "generator/data/metrics/metrics.h"

namespace valora::generator {

struct EvaluationOptions {
  std::string adapter;   // name in the engine; empty: the base model
  bool use_head = true;  // if the task and the adapter have one; false: the language model answers
  int concurrency = 64;  // in the engine at the same time
  // Applies to every answer. kInvalidArgument if a head answers. Boxes (kBoxes, as corners and with
  // sizes) are scored as such.
  std::optional<AnswerConstraint> constraint;
  std::function<void(int done, int total)> progress;
  std::stop_token stop;  // ends the evaluation with kCancelled
};

struct Evaluation {
  Score score;
  std::optional<ConfusionTable> confusion;
  std::vector<Prediction> predictions;
  std::string head;                         // the head that answered; empty: the language model
  double seconds = 0;                       // wall-clock time of all requests together
  double latency_p50 = 0, latency_p90 = 0;  // per request, in seconds
  int64_t prompt_tokens = 0, completion_tokens = 0;
};

// samples must have questions and answers (apply_templates). Decodes greedily. If the engine
// rejects a sample, the evaluation ends with an error that names the sample's origin.
Result<Evaluation> evaluate(Engine& engine, const Task& task, std::span<const Sample> samples,
                            const EvaluationOptions& options);

// The prompt for training and serving: one user turn with the media, then the question. Video
// frames in separate files are sent as a single data: URL.
Result<Prompt> prompt_of(const Sample& sample);

}  // namespace valora::generator
