// `valora eval`: measures the accuracy of the base model and adapters on tasks, through the serving
// engine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>

#include "api/waiting_calls.h"
#include "cli/answer_form_flags.h"
#include "cli/chosen_tasks.h"
#include "cli/command.h"
#include "cli/eval_report.h"
#include "cli/format.h"
#include "cli/progress_bar.h"
#include "engine/serving_engine.h"
#include "generator/data/datasets.h"
#include "generator/data/manifest.h"
#include "generator/teacher.h"

namespace valora::cli {
namespace {

using generator::Manifest;
using generator::Sample;
using GeneratorTask = generator::Task;

struct Flags {
  EngineOptions engine;
  std::string tasks, adapter, manifest, predictions;
  std::vector<std::string> names;
  std::optional<int64_t> limit;
  int concurrency = 64;
  AnswerFormFlags form;
  bool base = false, no_head = false, json = false;
};

// A task and the model that answers it: an adapter's folder, or the base model.
struct Exam {
  GeneratorTask task;
  std::string adapter;
};

Status check(const Flags& flags) {
  if (!flags.adapter.empty() && !flags.manifest.empty())
    return invalid("--adapter and --manifest exclude each other");
  if (flags.limit && *flags.limit < 1) return invalid("--limit must be at least 1");
  if (flags.concurrency < 1) return invalid("--concurrency must be at least 1");
  VALORA_CHECK(constraint_of(flags.form));  // before the model is loaded
  return {};
}

// Takes the task's adapter, head and question from the manifest.
Result<Exam> manifest_exam(const Manifest& manifest, const std::string& path, GeneratorTask task) {
  const auto found = manifest.tasks.find(task.name);
  if (found == manifest.tasks.end())
    return invalid(path + " has no task " + task.name + "; choose other tasks with --task",
                   "manifest");
  const generator::ManifestEntry& entry = found->second;
  const bool multi_label = task.head && task.head->multi_label;
  task.head.reset();
  if (entry.head) task.head = generator::HeadSpec{*entry.head, multi_label};
  if (!entry.prompt.empty()) task.question = entry.prompt;
  return Exam{std::move(task), entry.adapter};
}

Result<std::vector<Exam>> exams_of(const Flags& flags, const Manifest& manifest,
                                   const GeneratorTask& task) {
  std::vector<Exam> exams;
  if (flags.base || (flags.adapter.empty() && flags.manifest.empty())) exams.push_back({task, ""});
  if (!flags.adapter.empty()) exams.push_back({task, flags.adapter});
  if (flags.manifest.empty()) return exams;
  VALORA_TRY(exam, manifest_exam(manifest, flags.manifest, task));
  exams.push_back(std::move(exam));
  return exams;
}

// The adapter folders of all exams, without duplicates.
Result<std::set<std::string>> adapters_of(const Flags& flags, const Manifest& manifest,
                                          const std::vector<GeneratorTask>& tasks) {
  std::set<std::string> adapters;
  for (const GeneratorTask& task : tasks) {
    VALORA_TRY(exams, exams_of(flags, manifest, task));
    for (const Exam& exam : exams)
      if (!exam.adapter.empty()) adapters.insert(exam.adapter);
  }
  return adapters;
}

Result<std::unique_ptr<ServingEngine>> start_engine(Flags& flags,
                                                    const std::set<std::string>& adapters) {
  EngineOptions& options = flags.engine;
  options.fetch.allowed_local_path = "/";  // the command's user chooses the files
  options.max_waiting = std::max(options.max_waiting, flags.concurrency);
  // + 1: a teacher adapter
  options.max_loras = std::max(options.max_loras, static_cast<int>(adapters.size()) + 1);
  VALORA_TRY(engine, ServingEngine::start(options));
  for (const std::string& adapter : adapters) {
    const auto card = load_adapter_now(*engine, {.name = adapter, .path = adapter});
    if (!card.ok())
      return Error{card.error().code, "adapter " + adapter + ": " + card.error().message, {}};
  }
  return engine;
}

// The task's validation data, or the validation part of its teacher's data.
Result<std::vector<Sample>> validation_samples(GeneratorTask& task, Engine& engine) {
  if (task.validation) return generator::read_samples(*task.validation, task);
  ProgressBar bar;
  generator::TeacherOptions options;
  options.progress = [&](int done, int total) {
    bar.show(done, total, task.name + ": labels by its teacher");
  };
  VALORA_TRY(data, generator::ask_teacher(task, &engine, options));
  if (data.validation.empty())
    return invalid(task.where + ": task " + task.name +
                   " has no validation data, and its teacher gave none; add \"validation\"");
  return std::move(data.validation);
}

// If the task lists no labels, those of its training data are used.
Status settle_labels(GeneratorTask& task) {
  if (task.type != generator::TaskType::kClassification || !task.labels.empty() || !task.train)
    return {};
  VALORA_TRY(train, generator::read_samples(*task.train, task));
  VALORA_TRY(labels, generator::labels_of(task, train));
  task.labels = std::move(labels);
  return {};
}

Result<TaskResult> examine(const Flags& flags, Engine& engine, const Exam& exam,
                           std::vector<Sample> samples) {
  VALORA_CHECK(generator::apply_templates(exam.task, samples));
  ProgressBar bar;
  generator::EvaluationOptions options;
  options.adapter = exam.adapter;
  options.use_head = !flags.no_head;
  options.concurrency = flags.concurrency;
  VALORA_TRY(constraint, constraint_of(flags.form));
  options.constraint = std::move(constraint);
  options.progress = [&](int done, int total) { bar.show(done, total, exam.task.name); };
  VALORA_TRY(evaluation, generator::evaluate(engine, exam.task, samples, options));
  return TaskResult{exam.task, exam.adapter, std::move(samples), std::move(evaluation)};
}

// Runs the task with each of its models.
Status evaluate_task(const Flags& flags, const Manifest& manifest, Engine& engine,
                     GeneratorTask task, std::vector<TaskResult>& results) {
  VALORA_CHECK(settle_labels(task));
  VALORA_TRY(samples, validation_samples(task, engine));
  if (flags.limit && samples.size() > static_cast<size_t>(*flags.limit))
    samples.resize(static_cast<size_t>(*flags.limit));
  VALORA_TRY(exams, exams_of(flags, manifest, task));
  for (const Exam& exam : exams) {
    VALORA_TRY(result, examine(flags, engine, exam, samples));
    results.push_back(std::move(result));
  }
  return {};
}

Status evaluate_all(Flags& flags) {
  VALORA_CHECK(check(flags));
  VALORA_TRY(tasks, chosen_tasks(flags.tasks, flags.names));
  Manifest manifest;
  if (!flags.manifest.empty()) {
    VALORA_TRY(read, generator::read_manifest(flags.manifest));
    manifest = std::move(read);
  }
  VALORA_TRY(adapters, adapters_of(flags, manifest, tasks));
  VALORA_TRY(engine, start_engine(flags, adapters));
  std::vector<TaskResult> results;
  for (const GeneratorTask& task : tasks)
    VALORA_CHECK(evaluate_task(flags, manifest, *engine, task, results));
  if (!flags.predictions.empty()) VALORA_CHECK(write_predictions(flags.predictions, results));
  if (flags.json)
    print_json(eval_json(engine->model(), results));
  else
    std::cout << eval_text(results);
  return {};
}

int run_eval(Flags& flags) {
  const Status status = evaluate_all(flags);
  return status.ok() ? 0 : fail(status.error());
}

}  // namespace

void add_eval(Command app, std::function<int()>& run) {
  auto flags = std::make_shared<Flags>();
  Command c = app.add_subcommand(
      "eval",
      "Measure the accuracy of the base model and adapters on tasks, through the serving engine");
  add_engine_flags(c, flags->engine);
  c.add_option("--tasks", flags->tasks, "Tasks file (docs/tasks.md)").required();
  c.add_option("--task", flags->names, "Run only these tasks of the file");
  c.add_option("--adapter", flags->adapter,
               "Adapter folder to evaluate (default: the base model, if there is no --manifest)");
  c.add_option("--manifest", flags->manifest,
               "manifest.json with the adapter, head and question of each task");
  c.add_flag("--base", flags->base, "Also evaluate the base model");
  c.add_flag("--no-head", flags->no_head,
             "Answer with the language model even if the adapter has a head for the task");
  add_answer_form_flags(c, flags->form);
  c.add_option("--limit", flags->limit, "Evaluate only the first N samples per task");
  c.add_option("--concurrency", flags->concurrency, "Highest number of concurrent samples")
      .capture_default_str();
  c.add_flag("--json", flags->json, "Print one JSON object");
  c.add_option("--predictions", flags->predictions,
               "File to write each sample with its answer and score to, as JSON lines");
  c.callback([flags, &run] { run = [flags] { return run_eval(*flags); }; });
}

}  // namespace valora::cli
