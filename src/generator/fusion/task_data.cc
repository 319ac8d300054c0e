#include "generator/fusion/task_data.h"

#include <algorithm>
#include <map>

#include "generator/data/datasets.h"
#include "generator/data/metrics/metrics.h"
#include "generator/evaluator.h"
#include "generator/teacher.h"

namespace valora::generator {
namespace {

struct Sets {
  std::vector<Sample> train, validation;
  int64_t dropped = 0;
};

Result<Sets> read_sets(const Task& task, const FusionOptions& options, Engine& engine,
                       const std::function<void(const LoadingProgress&)>& progress) {
  Sets sets;
  if (task.teacher) {
    TeacherOptions asked{.seed = options.seed};
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

// A head's name must be a valid module name: without dots.
std::string head_name(const Task& task) {
  if (!task.head) return {};
  std::string name = task.head->name == HeadSpec().name ? "score_" + task.name : task.head->name;
  std::ranges::replace(name, '.', '_');
  return name;
}

Result<ExampleRequest> request_of(const Sample& sample, const Task& task, bool with_answer) {
  VALORA_TRY(prompt, prompt_of(sample));
  ExampleRequest request{sample.origin, std::move(prompt)};
  if (with_answer) request.answer = sample.answer;
  if (!task.head) return request;
  request.head = 0;
  for (const std::string& label : sample.labels)
    request.labels.push_back(std::ranges::find(task.labels, label) - task.labels.begin());
  return request;
}

void add(DigestBuilder& builder, const Sample& sample) {
  builder.add(sample.question).add(sample.answer);
  for (const std::string& text : sample.references) builder.add(text);
  for (const std::string& text : sample.labels) builder.add(text);
  for (const Medium& medium : sample.media)
    for (const std::string& file : medium.files) builder.add(file);
  for (const LabelledBox& box : sample.boxes)
    builder.add(box.label).add(box.box.x0).add(box.box.y0).add(box.box.x1).add(box.box.y1);
}

}  // namespace

Result<TaskData> load_task(const Task& task, const FusionOptions& options,
                           const TrainableModel& model, Engine& engine,
                           const std::function<void(const LoadingProgress&)>& progress) {
  TaskData data;
  data.task = task;
  VALORA_TRY(sets, read_sets(task, options, engine, progress));
  if (has_labels(task.type)) {
    VALORA_TRY(labels, labels_of(task, sets.train));
    data.task.labels = std::move(labels);
  }
  VALORA_CHECK(apply_templates(data.task, sets.train));
  VALORA_CHECK(apply_templates(data.task, sets.validation));
  data.head = head_name(task);
  data.train_samples = static_cast<int64_t>(sets.train.size());
  data.dropped = sets.dropped;

  DigestBuilder builder;
  std::vector<ExampleRequest> requests;
  for (const Sample& sample : sets.train) {
    add(builder, sample);
    VALORA_TRY(request, request_of(sample, data.task, !task.head || options.language_with_head));
    requests.push_back(std::move(request));
  }
  for (const Sample& sample : sets.validation) add(builder, sample);
  VALORA_TRY(examples,
             model.examples(std::move(requests), std::max(1, options.engine.media_workers),
                            [&](int done, int total) {
                              progress({task.name, "reading pictures", done, total});
                            }));
  data.examples = std::move(examples);
  data.validation = std::move(sets.validation);
  data.digest = builder.add(task.name).add(data.head).add(task.weight).finish();
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
