// Checks for answers that are longer than their task allows.
#pragma once

#include <span>
#include <string>

#include "api/engine.h"
#include "generator/data/task.h"

namespace valora::generator {

// Logs how many of the samples' answers exceed task.max_answer_tokens. part: name of the data, e.g.
// "validation". kInvalidArgument if all do and the metric accepts only whole answers. samples:
// after apply_templates.
Status check_answer_lengths(const Engine& engine, const Task& task, std::span<const Sample> samples,
                            const std::string& part);

}  // namespace valora::generator
