#include "generator/answer_lengths.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log/log.h"

namespace valora::generator {
namespace {

// The other metrics give credit for the part of an answer that is present.
bool takes_whole_answers(Metric metric) {
  return metric == Metric::kTop1 || metric == Metric::kExact || metric == Metric::kVqa;
}

}  // namespace

Status check_answer_lengths(const Engine& engine, const Task& task, std::span<const Sample> samples,
                            const std::string& part) {
  size_t longer = 0, longest = 0;
  for (const Sample& sample : samples) {
    if (sample.answer.empty()) continue;
    const auto tokens = engine.tokenize(Prompt(sample.answer), /*add_special_tokens=*/false);
    if (!tokens.ok())
      return Error{tokens.error().code, sample.origin + ": its answer: " + tokens.error().message,
                   "answer"};
    longer += tokens->size() > static_cast<size_t>(task.max_answer_tokens);
    longest = std::max(longest, tokens->size());
  }
  if (longer == 0) return {};
  const std::string lengths =
      fmt::format("max_answer_tokens ({}; the longest has {})", task.max_answer_tokens, longest);
  if (longer == samples.size() && takes_whole_answers(task.metric))
    return invalid(
        fmt::format("{}: task {}: all {} {} answers are longer than {}, so none could be "
                    "right; raise max_answer_tokens",
                    task.where, task.name, longer, part, lengths),
        "max_answer_tokens");
  spdlog::warn(
      "task {}: {} of {} {} answers ({:.0f} %) are longer than {}: the model's are cut there; "
      "raise "
      "max_answer_tokens",
      task.name, longer, samples.size(), part,
      100.0 * static_cast<double>(longer) / static_cast<double>(samples.size()), lengths);
  return {};
}

}  // namespace valora::generator
