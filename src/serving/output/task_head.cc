#include "serving/output/task_head.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "serving/output/answer_shape.h"

namespace valora::serving {
namespace {

constexpr std::string_view kLanguageModel = "lm";  // unless a head has this name

}  // namespace

Classification classification_of(const LoadedHead& head, std::vector<float> logits,
                                 std::vector<float> probs) {
  Classification result;
  result.head = head.name;
  result.labels = head.labels;
  result.probs = std::move(probs);
  result.best = static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  result.logits = std::move(logits);
  return result;
}

Result<const LoadedHead*> choose_head(const GenerateRequest& request,
                                      std::span<const AppliedAdapter> adapters) {
  if (request.task == Task::kTokenize || request.task == Task::kEmbed)
    return static_cast<const LoadedHead*>(nullptr);
  const bool classify = request.task == Task::kClassify;
  const std::optional<std::string>& asked =
      request.head || adapters.empty() ? request.head : adapters.front().head;
  if (!classify && asked && asked->empty()) return static_cast<const LoadedHead*>(nullptr);
  std::vector<const LoadedHead*> heads;
  std::vector<std::string> names;
  for (const AppliedAdapter& use : adapters)
    for (const LoadedHead& head : use.adapter->heads) {
      if (asked && *asked != head.name) continue;
      heads.push_back(&head);
      names.push_back(head.name);
    }
  if (heads.size() == 1) return heads.front();
  // With several heads, only the request can choose one; without a choice, text is a valid answer.
  if (!classify && (!asked || (heads.empty() && *asked == kLanguageModel)))
    return static_cast<const LoadedHead*>(nullptr);
  if (heads.empty() && asked && !asked->empty())
    return invalid("this model has no head \"" + *asked + "\"", "head");
  if (heads.empty())
    return invalid("this model has no classification head; ask an adapter that has one", "model");
  return invalid(fmt::format("the request's adapters have several heads ({}); name one in \"head\"",
                             fmt::join(names, ", ")),
                 "head");
}

namespace {

constexpr float kAccepted = 0.5f;  // the least probability of a label among several

std::vector<std::string> accepted(const Classification& result) {
  std::vector<std::string> chosen;
  for (size_t i = 0; i < result.probs.size(); ++i)
    if (result.probs[i] >= kAccepted) chosen.push_back(result.labels[i]);
  return chosen;
}

}  // namespace

std::string label_answer(const LoadedHead& head, const Classification& result, bool confidence) {
  if (head.problem_type != adapters::ProblemType::kMultiLabel)
    return label_json(result.labels[result.best],
                      confidence ? std::optional<double>(result.probs[result.best]) : std::nullopt);
  std::vector<double> probabilities;
  for (const float one : result.probs)
    if (confidence && one >= kAccepted) probabilities.push_back(one);
  return labels_json(accepted(result), probabilities);
}

std::string label_text(const LoadedHead& head, const Classification& result) {
  switch (head.problem_type) {
    case adapters::ProblemType::kSingleLabel: return result.labels[result.best];
    case adapters::ProblemType::kRegression:
      return fmt::format("{}", fmt::join(result.logits, ", "));
    case adapters::ProblemType::kMultiLabel: break;
  }
  return fmt::format("{}", fmt::join(accepted(result), ", "));
}

}  // namespace valora::serving
