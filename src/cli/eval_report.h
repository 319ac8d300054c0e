// The output of `valora eval`.
#pragma once

#include <string>
#include <vector>

#include "api/engine.h"
#include "base/json/json.h"
#include "generator/evaluator.h"

namespace valora::cli {

// The result of one task, for the base model or one adapter.
struct TaskResult {
  generator::Task task;
  std::string adapter;  // folder; empty: the base model
  std::vector<generator::Sample> samples;
  generator::Evaluation evaluation;
};

// True if a task misses its floor. The base model counts only if no adapter was evaluated.
bool misses_a_floor(const std::vector<TaskResult>& results);
std::string eval_text(const std::vector<TaskResult>& results);
Json eval_json(const ModelCard& model, const std::vector<TaskResult>& results);
// One JSON line per sample: {"task", "adapter", "origin", "question", "answer", "labels", "boxes",
// "prediction", "score"}. The file is written atomically.
Status write_predictions(const std::string& path, const std::vector<TaskResult>& results);

}  // namespace valora::cli
