// A teacher that is another adapter of the same base model, used through the serving engine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/waiting_calls.h"
#include "generator/engine_requests.h"
#include "generator/evaluator.h"
#include "generator/teachers/lesson.h"

namespace valora::generator {
namespace {

// Loads the adapter under its own name for as long as it is used.
class GuestAdapter {
 public:
  GuestAdapter(Engine& engine, AdapterCard card) : engine_(engine), card_(std::move(card)) {}
  ~GuestAdapter() { (void)unload_adapter_sync(engine_, card_.name); }
  GuestAdapter(const GuestAdapter&) = delete;
  GuestAdapter& operator=(const GuestAdapter&) = delete;
  const AdapterCard& card() const { return card_; }

 private:
  Engine& engine_;
  AdapterCard card_;
};

// Empty: the language model answers.
Result<std::string> choose_head(const Task& task, const AdapterCard& card) {
  if (!wants_labels(task) || card.heads.empty()) return std::string();
  if (card.heads.size() == 1) return card.heads.front().first;
  std::vector<std::string> names;
  for (const auto& [name, labels] : card.heads) {
    if (task.head && task.head->name == name) return name;
    names.push_back(name);
  }
  return invalid(fmt::format("{} has several heads ({}); the task's \"head\" must name one of them",
                             card.path, fmt::join(names, ", ")));
}

Lesson lesson_of(const Task& task, const Classification& c) {
  const bool several = task.head && task.head->multi_label;
  Lesson lesson;
  lesson.confidence = several ? 1 : c.probs[static_cast<size_t>(c.best)];
  for (size_t i = 0; i < c.labels.size(); ++i) {
    // The confidence is that of the least certain label.
    if (several)
      lesson.confidence =
          std::min<double>(*lesson.confidence, std::max(c.probs[i], 1 - c.probs[i]));
    if (several ? c.probs[i] < kLabelHolds : static_cast<int>(i) != c.best) continue;
    lesson.labels.push_back(c.labels[i]);
    lesson.foreign |= std::ranges::find(task.labels, c.labels[i]) == task.labels.end();
  }
  return lesson;
}

GenerateRequest request_of(const Task& task, const std::string& adapter, const std::string& head,
                           Prompt prompt) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.adapters = {{adapter, 1}};
  request.sampling.max_tokens = task.max_answer_tokens;
  request.sampling.temperature = 0;
  request.sampling.logprobs = 0;  // chosen tokens only, no alternatives
  request.task = head.empty() ? valora::Task::kGenerate : valora::Task::kClassify;
  request.head = head;
  return request;
}

}  // namespace

Result<std::vector<Lesson>> ask_adapter(const Task& task, std::span<const Question> questions,
                                        Engine& engine, const TeacherOptions& options) {
  const std::string& path = task.teacher->path;
  auto card =
      load_adapter_sync(engine, {.name = "teacher of " + task.name, .path = path, .replace = true});
  if (!card.ok())
    return Error{card.error().code, "teacher " + path + ": " + card.error().message, {}};
  const GuestAdapter guest(engine, std::move(card).value());
  VALORA_TRY(head, choose_head(task, guest.card()));
  EngineRequests requests;
  requests.count = static_cast<int>(questions.size());
  requests.concurrency = options.concurrency;
  requests.make = [&](int i) -> Result<GenerateRequest> {
    Sample sample = questions[i].input;
    sample.question = questions[i].text;
    VALORA_TRY(prompt, prompt_of(sample));
    return request_of(task, guest.card().name, head, std::move(prompt));
  };
  requests.name = [&](int i) { return "teacher " + path + ": " + questions[i].input.origin; };
  requests.progress = options.progress;
  requests.stop = options.stop;
  VALORA_TRY(answers, ask_all(engine, requests));
  std::vector<Lesson> lessons;
  for (size_t i = 0; i < answers.size(); ++i) {
    const EngineAnswer& answer = answers[i];
    lessons.push_back(answer.classification ? lesson_of(task, *answer.classification)
                                            : read_lesson(task, questions[i], answer.text));
    if (!answer.classification) lessons.back().confidence = confidence_of(answer.logprobs);
  }
  return lessons;
}

}  // namespace valora::generator
