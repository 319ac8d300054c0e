#include "generator/fusion/task_data.h"

#include <algorithm>
#include <map>

#include "generator/answer_lengths.h"
#include "generator/data/datasets.h"
#include "generator/data/metrics/metrics.h"
#include "generator/evaluator.h"
#include "generator/fusion/task_digest.h"
#include "generator/teacher.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora::generator {
namespace {

struct Sets {
  std::vector<Sample> train, validation;
  int64_t dropped = 0;
};

Result<Sets> read_sets(const Task& task, const FusionOptions& options, Engine& engine,
                       const std::function<void(const LoadingProgress&)>& progress,
                       const std::stop_token& stop) {
  Sets sets;
  if (task.teacher) {
    TeacherOptions asked{.seed = options.seed};
    asked.stop = stop;
    asked.progress = [&](int done, int total) {
      progress({task.name, "asking the teacher", done, total});
    };
    VALORA_TRY(taught, ask_teacher(task, &engine, asked));
    sets.train = std::move(taught.train);
    sets.validation = std::move(taught.validation);
    sets.dropped = taught.counts.asked - taught.counts.kept;
  } else {
    VALORA_TRY(train, read_samples(*task.train, task));
    sets.train = std::move(train);
  }
  if (task.validation) {
    VALORA_TRY(validation, read_samples(*task.validation, task));
    sets.validation = std::move(validation);
  }
  if (options.validation_limit &&
      static_cast<int64_t>(sets.validation.size()) > *options.validation_limit)
    sets.validation.resize(static_cast<size_t>(*options.validation_limit));
  if (sets.train.empty())
    return invalid(task.where + ": the task " + task.name + " has no training samples", "train");
  if (sets.validation.empty())
    return invalid(task.where + ": the task " + task.name + " has no validation samples",
                   "validation");
  return sets;
}

ExampleRequest request_of(const Sample& sample, const TaskData& data, bool with_answer) {
  ExampleRequest request{sample.origin,
                         [asked = Sample{.media = sample.media, .question = sample.question}] {
                           return prompt_of(asked);
                         }};
  if (with_answer) request.answer = sample.answer;
  request.head = data.head;
  if (data.head.empty()) return request;
  const std::vector<std::string>& known = data.task.labels;
  for (const std::string& label : sample.labels)
    request.labels.push_back(std::ranges::find(known, label) - known.begin());
  return request;
}

// Fills in labels, questions and answers, based on the training samples.
Status resolve_texts(TaskData& data, Sets& sets) {
  Task& task = data.task;
  VALORA_TRY(question, common_question(task, sets.train));
  VALORA_TRY(asked_labels, question_labels(task, sets.train));
  data.question = std::move(question);
  data.labels = answer_labels(task, sets.train);
  if (has_labels(task.type)) task.labels = data.labels;
  VALORA_CHECK(apply_templates(task, sets.train, asked_labels));
  return apply_templates(task, sets.validation, asked_labels);
}

// The tokens that open the answer's turn: those that a generation prompt has in addition.
Result<std::vector<int32_t>> answer_turn(const serving::Frontend& frontend) {
  ChatPrompt turns;
  turns.messages = {{"user", {std::string("a")}}};
  turns.add_generation_prompt = false;
  VALORA_TRY(without, frontend.tokenize(turns, /*add_special_tokens=*/false));
  turns.add_generation_prompt = true;
  VALORA_TRY(with, frontend.tokenize(turns, /*add_special_tokens=*/false));
  const auto [end, begin] = std::ranges::mismatch(without, with);
  if (end != without.end() || begin == with.end())
    return unprocessable(
        "the chat template does not open the answer's turn with tokens of its "
        "own; name the text from which on adapters act (activation.invocation)",
        "activation");
  return std::vector<int32_t>(begin, with.end());
}

// The invocation of the task's activated adapters; empty: none are wanted.
Result<std::vector<int32_t>> invocation_of(const Task& task, const FusionOptions& options,
                                           const serving::Frontend& frontend) {
  const Activation activation = task.activation.value_or(Activation{options.activated, {}});
  if (!activation.tried) return std::vector<int32_t>();
  if (options.targets != std::vector{TargetPart::kDecoder})
    return invalid("activated adapters act on the decoder only; use --targets decoder", "targets");
  if (activation.invocation.empty()) return answer_turn(frontend);
  return frontend.tokenizer()->encode(activation.invocation, /*add_special_tokens=*/false);
}

// Every prompt must have the invocation, or the adapter would not act on it.
Status check_invocation(const std::vector<int32_t>& invocation, std::span<const Example> examples) {
  for (const Example& example : examples)
    if (serving::acts_from(
            invocation,
            std::span(example.tokens).first(static_cast<size_t>(example.prompt_tokens))) ==
        serving::kNever)
      return invalid(example.origin +
                         ": its prompt does not have the tokens of the invocation, "
                         "so an activated adapter would never act",
                     "activation");
  return {};
}

// Adds the properties of a task that affect its results, apart from the samples.
DigestBuilder& with_task(DigestBuilder& builder, const TaskData& data) {
  const Task& task = data.task;
  builder.add(task.name).add(data.head).add(task.weight).add(task.max_answer_tokens);
  builder.add(std::string_view(task_type_name(task.type)));
  builder.add(std::string_view(metric_name(task.metric)));
  builder.add(task.boxes.scale).add(task.boxes.labels);
  builder.add(task.head && task.head->multi_label);
  for (const std::string& label : task.labels) builder.add(label);
  return builder;
}

// Checks the language model's answers, which max_answer_tokens may cut off.
Status check_lengths(const Engine& engine, const TaskData& data, const Sets& sets) {
  if (!data.head.empty()) return {};
  VALORA_CHECK(check_answer_lengths(engine, data.task, sets.validation, "validation"));
  return check_answer_lengths(engine, data.task, sets.train, "training");
}

}  // namespace

Result<std::vector<ExampleRequest>> sample_requests(const Task& task, int64_t most) {
  if (!task.train)
    return invalid(task.where + ": the task " + task.name + " has no samples of its own (train)",
                   "train");
  VALORA_TRY(samples, read_samples(*task.train, task));
  VALORA_TRY(labels, question_labels(task, samples));
  VALORA_CHECK(apply_templates(task, samples, labels));
  const auto count = static_cast<int64_t>(samples.size()), wanted = std::min(most, count);
  std::vector<ExampleRequest> requests;
  for (int64_t i = 0; i < wanted; ++i)  // spread evenly over all of them
    requests.push_back(
        request_of(samples[static_cast<size_t>(i * count / wanted)], TaskData{}, true));
  return requests;
}

// The task's name as a valid module name, which has no dots.
std::string head_name(const Task& task) {
  if (!task.head) return {};
  std::string name = task.head->name == HeadSpec().name ? "score_" + task.name : task.head->name;
  std::ranges::replace(name, '.', '_');
  return name;
}

Status check_head_names(const std::vector<Task>& tasks) {
  std::map<std::string, std::string> owners;
  for (const Task& task : tasks) {
    if (!task.head) continue;
    const auto [owner, is_new] = owners.emplace(head_name(task), task.name);
    if (!is_new)
      return invalid(task.where + ": the heads of " + owner->second + " and " + task.name +
                         " are both named " + owner->first + "; give them different names",
                     "head");
  }
  return {};
}

Result<TaskData> load_task(const Task& task, const FusionOptions& options,
                           const TrainableModel& model, Engine& engine,
                           const std::function<void(const LoadingProgress&)>& progress,
                           const std::stop_token& stop) {
  TaskData data;
  data.task = task;
  data.head = head_name(task);
  VALORA_TRY(sets, read_sets(task, options, engine, progress, stop));
  VALORA_CHECK(resolve_texts(data, sets));
  VALORA_CHECK(check_lengths(engine, data, sets));
  data.train_samples = static_cast<int64_t>(sets.train.size());
  data.dropped = sets.dropped;

  const auto reading = [&](int done, int total) {
    progress({task.name, "reading pictures", done, total});
  };
  const int threads = std::max(1, options.engine.media_workers);
  std::vector<ExampleRequest> requests;
  for (const Sample& sample : sets.train)
    requests.push_back(request_of(sample, data, !task.head || options.language_with_head));
  VALORA_TRY(examples, model.examples(std::move(requests), threads, reading, stop));
  VALORA_TRY(invocation, invocation_of(task, options, *model.frontend));
  VALORA_CHECK(check_invocation(invocation, examples));
  data.invocation = std::move(invocation);
  DigestBuilder builder;
  add_training(builder, sets.train, examples);
  VALORA_CHECK(add_validation(builder, sets.validation, threads, reading, stop));
  data.digest = with_task(builder, data).finish();
  data.examples = std::make_shared<const std::vector<Example>>(std::move(examples));
  data.validation = std::move(sets.validation);
  return data;
}

std::optional<double> chance_of(const TaskData& data) {
  if (data.task.labels.empty()) return std::nullopt;
  std::map<std::string, std::vector<size_t>> by_label;
  for (size_t i = 0; i < data.validation.size(); ++i) {
    if (data.validation[i].labels.size() != 1) return std::nullopt;
    by_label[data.validation[i].labels.front()].push_back(i);
  }
  size_t most = 0;
  for (const auto& [label, places] : by_label) most = std::max(most, places.size());
  return static_cast<double>(most) / static_cast<double>(data.validation.size());
}

}  // namespace valora::generator
