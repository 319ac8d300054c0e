// What `valora eval` prints and writes.
#pragma once

#include <string>
#include <vector>

#include "api/engine.h"
#include "base/json.h"
#include "generator/evaluator.h"

namespace valora::cli {

// A task answered by one model.
struct TaskResult {
  generator::Task task;
  std::string adapter;  // folder; empty: the base model
  std::vector<generator::Sample> samples;
  generator::Evaluation evaluation;
};

std::string eval_text(const std::vector<TaskResult>& results);
Json eval_json(const ModelCard& model, const std::vector<TaskResult>& results);
// One line a sample: {"task", "adapter", "origin", "question", "answer", "labels", "boxes",
// "prediction", "score"}. There whole or not at all.
Status write_predictions(const std::string& path, const std::vector<TaskResult>& results);

}  // namespace valora::cli
