#include "generator/fusion/attempt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "adapters/adapter_spec.h"
#include "api/waiting_calls.h"
#include "base/clock.h"
#include "generator/evaluator.h"
#include "generator/train/peft_writer.h"
#include "ops/device/parallel.h"

namespace valora::generator {
namespace {

constexpr char kCandidate[] = "candidate";  // name in the engine during the evaluation

// Unloads the candidate from the engine, even after an error.
struct LoadedCandidate {
  Engine& engine;
  ~LoadedCandidate() { (void)unload_adapter_sync(engine, kCandidate); }
};

uint64_t seed_of(uint64_t seed, const std::vector<const TaskData*>& tasks, int64_t rank) {
  DigestBuilder builder;
  builder.add(seed).add(rank);
  for (const TaskData* task : tasks) builder.add(task->task.name);
  return builder.finish().low;
}

double mean(const std::map<std::string, double>& values) {
  double sum = 0;
  for (const auto& [name, value] : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::vector<const TaskData*> with(std::vector<const TaskData*> tasks, const TaskData* one) {
  tasks.push_back(one);
  return tasks;
}

}  // namespace

Result<AdapterShape> AttemptRunner::shape_of(const std::vector<const TaskData*>& tasks,
                                             int64_t rank, std::vector<int32_t> invocation) const {
  AdapterShape shape{
      rank, options_.alpha_per_rank * static_cast<double>(rank), {}, {}, std::move(invocation)};
  VALORA_TRY(modules, target_modules(model_.loaded.model->spec().modules, options_.targets));
  shape.modules = std::move(modules);
  for (const TaskData* data : tasks)
    if (!data->head.empty())
      shape.heads.push_back({data->head, data->task.labels, data->task.head->multi_label});
  return shape;
}

Result<AdapterParameters> AttemptRunner::load(const AdapterShape& shape, const std::string& folder,
                                              uint64_t seed) const {
  const adapters::ModuleTable& modules = model_.loaded.model->spec().modules;
  AdapterParameters parameters(shape, modules, model_.loaded.dtype, model_.device, seed);
  if (folder.empty()) return parameters;
  VALORA_TRY(spec, adapters::read_adapter(folder, modules, {}));
  VALORA_CHECK(parameters.assign(spec, modules));
  return parameters;
}

Status AttemptRunner::write(const std::string& folder, const AdapterParameters& parameters,
                            const std::vector<const TaskData*>& tasks, bool bfloat16) const {
  const EngineOptions& engine = options_.engine;
  AdapterNotes notes{
      .base_model = engine.served_name.empty() ? engine.model_path : engine.served_name,
      .dropout = options_.training.dropout,
      .bfloat16 = bfloat16};
  std::vector<std::string> names;
  for (const TaskData* data : tasks) {
    names.push_back(data->task.name);
    if (!data->head.empty()) notes.head_questions.push_back(data->question);
  }
  notes.task = fmt::format("{}", fmt::join(names, ", "));
  notes.description = "Trained by valora fuse on: " + notes.task + ".";
  if (tasks.size() == 1) notes.question = tasks.front()->question;
  return write_adapter(folder, parameters, model_.loaded.model->spec().modules, notes);
}

// The new samples, plus samples of all held tasks, replayed with a share of options.replay.
std::vector<TrainingSource> AttemptRunner::sources_of(
    const Attempt& attempt, const std::vector<const TaskData*>& tasks) const {
  std::vector<TrainingSource> sources;
  const double replay = attempt.held.empty() ? 0 : options_.replay;
  double weights = 0;
  for (const TaskData* data : attempt.held) weights += data->task.weight;
  for (const TaskData* data : tasks) {
    const double share = data == attempt.task ? 1 - replay : replay * data->task.weight / weights;
    if (share > 0) sources.push_back({data->examples, share});
  }
  return sources;
}

Result<double> AttemptRunner::accuracy(const TaskData& data, const std::string& folder) {
  EvaluationOptions asked{.adapter = folder.empty() ? "" : kCandidate,
                          .use_head = !data.head.empty()};
  asked.progress = [&](int done, int total) {
    events_.progress("asking " + data.task.name, done, total, "");
  };
  asked.stop = events_.stop;
  Task task = data.task;
  if (task.head) task.head->name = data.head;
  ops::release_threads();  // so that the engine can use the threads
  VALORA_TRY(evaluation, evaluate(engine_, task, data.validation, asked));
  return evaluation.score.value;
}

Result<std::map<std::string, double>> AttemptRunner::accuracies(
    const std::vector<const TaskData*>& tasks, const std::string& folder) {
  VALORA_TRY(card,
             load_adapter_sync(engine_, {.name = kCandidate, .path = folder, .replace = true}));
  const LoadedCandidate loaded{engine_};
  std::map<std::string, double> found;
  for (const TaskData* data : tasks) {
    VALORA_TRY(value, accuracy(*data, folder));
    found[data->task.name] = value;
  }
  return found;
}

Result<FusionStep> AttemptRunner::run(const Attempt& attempt) {
  const std::vector<const TaskData*> tasks = with(attempt.held, attempt.task);
  const uint64_t seed = seed_of(options_.seed, tasks, attempt.rank);
  VALORA_TRY(shape, shape_of(tasks, attempt.rank, attempt.invocation));
  VALORA_TRY(parameters, load(shape, attempt.from, seed));
  const std::vector<TrainingSource> sources = sources_of(attempt, tasks);
  TrainingOptions training = options_.training;
  training.seed = seed;

  FusionStep step{.task = attempt.task->task.name,
                  .adapter = attempt.adapter,
                  .rank = static_cast<int>(attempt.rank),
                  .activated = !attempt.invocation.empty()};
  const std::string what = "training " + attempt.adapter + " on " + step.task;
  TrainingCallbacks callbacks;
  callbacks.progress = [&](const TrainingProgress& p) {
    events_.progress(what, p.step, p.steps,
                     fmt::format("loss {:.3f}, {:.0f} samples/s", p.loss, p.samples_per_second));
  };
  if (training.evaluate_every > 0)
    callbacks.evaluate = [&](const AdapterParameters& now) -> Result<double> {
      VALORA_CHECK(write(attempt.folder, now, tasks, false));
      VALORA_TRY(values, accuracies(tasks, attempt.folder));
      return mean(values);
    };
  callbacks.stop = events_.stop;
  const std::string checkpoint = attempt.folder + ".checkpoint";
  Trainer trainer(model_, training, checkpoint);
  VALORA_TRY(trained, trainer.train(parameters, sources, callbacks));
  VALORA_CHECK(write(attempt.folder, parameters, tasks, false));
  step.seconds = trained.seconds;
  step.steps = trained.steps;
  step.first_loss = trained.first_loss;
  step.last_loss = trained.last_loss;
  if (sources.size() > 1) {
    const auto drawn = static_cast<double>(trained.steps * training.batch);
    double all = 0;
    for (const TrainingSource& source : sources) all += source.share;
    step.samples_before = static_cast<int>(drawn * (1 - sources.back().share / all));
  }

  const RealClock clock;
  const TimePoint begin = clock.now();
  VALORA_TRY(found, accuracies(tasks, attempt.folder));
  step.accuracies = std::move(found);
  step.evaluation_seconds = trained.evaluation_seconds + seconds(clock.now() - begin);
  std::error_code ignored;
  std::filesystem::remove(checkpoint, ignored);
  return step;
}

}  // namespace valora::generator
