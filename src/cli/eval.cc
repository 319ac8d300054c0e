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
#include "cli/named_folders.h"
#include "cli/options/engine_flags.h"
#include "cli/progress/format.h"
#include "cli/progress/progress_bar.h"
#include "engine/start/start_engine.h"
#include "generator/answer_lengths.h"
#include "generator/data/datasets.h"
#include "generator/data/manifest.h"
#include "generator/teacher.h"

namespace valora::cli {
namespace {

using generator::Manifest;
using generator::Sample;
using GeneratorTask = generator::Task;

struct EvalFlags {
  EngineOptions engine;
  HubFlags hub;
  std::string tasks, adapter, manifest, predictions;
  std::vector<std::string> names;
  std::optional<int64_t> limit;
  int concurrency = 64;
  AnswerFormFlags form;
  bool base = false, no_head = false, json = false, boxes = false;
};

// A task and the model that answers it: an adapter's folder, or the base model.
struct Exam {
  GeneratorTask task;
  std::string adapter;
  bool of_manifest = false;
};

Status check(const EvalFlags& flags) {
  if (!flags.adapter.empty() && !flags.manifest.empty())
    return invalid("--adapter and --manifest exclude each other");
  if (flags.limit && *flags.limit < 1) return invalid("--limit must be at least 1");
  if (flags.concurrency < 1) return invalid("--concurrency must be at least 1");
  VALORA_TRY(constraint, constraint_of(flags.form));  // before the model is loaded
  if (constraint && flags.boxes)
    return invalid("--boxes and " + constraint->param + " exclude each other");
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
  return Exam{std::move(task), entry.adapter, true};
}

Result<std::vector<Exam>> exams_of(const EvalFlags& flags, const Manifest& manifest,
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
Result<std::set<std::string>> adapters_of(const EvalFlags& flags, const Manifest& manifest,
                                          const std::vector<GeneratorTask>& tasks) {
  std::set<std::string> adapters;
  for (const GeneratorTask& task : tasks) {
    VALORA_TRY(exams, exams_of(flags, manifest, task));
    for (const Exam& exam : exams)
      if (!exam.adapter.empty()) adapters.insert(exam.adapter);
  }
  return adapters;
}

Result<std::unique_ptr<serving::LocalEngine>> open_engine(EvalFlags& flags,
                                                          const std::set<std::string>& adapters) {
  EngineOptions& options = flags.engine;
  options.fetch.allowed_local_path = "/";  // whoever runs the command may read any file
  options.max_waiting = std::max(options.max_waiting, flags.concurrency);
  // + 1 for a teacher adapter
  options.max_loras = std::max(options.max_loras, static_cast<int>(adapters.size()) + 1);
  VALORA_TRY(engine, start_engine(options));
  for (const std::string& adapter : adapters) {
    const auto card = load_adapter_sync(*engine, {.name = adapter, .path = adapter});
    if (!card.ok())
      return Error{card.error().code, "adapter " + adapter + ": " + card.error().message, {}};
  }
  return engine;
}

// A classification task without labels takes those of its training data. Returns the replacement
// for {labels} in the question; empty: the task's labels.
Result<std::vector<std::string>> resolve_labels(GeneratorTask& task) {
  const bool classifies = task.type == generator::TaskType::kClassification;
  const bool asks = generator::question_template(task).find("{labels}") != std::string::npos;
  if (!task.labels.empty() || !task.train || (!classifies && !asks))
    return std::vector<std::string>();
  VALORA_TRY(train, generator::read_samples(*task.train, task));
  if (classifies) {
    VALORA_TRY(labels, generator::labels_of(task, train));
    task.labels = std::move(labels);
  }
  return generator::question_labels(task, train);
}

// What --boxes asks of this model; nullopt if it writes the task's own notation.
std::optional<AnswerConstraint> box_constraint(const Exam& exam) {
  using generator::TaskType;
  const bool boxes =
      exam.task.type == TaskType::kDetection || exam.task.type == TaskType::kGrounding;
  if (!boxes || exam.of_manifest) return std::nullopt;
  AnswerConstraint constraint{AnswerConstraint::Kind::kBoxes, {}, {}, true, "--boxes"};
  if (exam.task.boxes.labels) constraint.choices = exam.task.labels;
  constraint.output.sizes = true;
  return constraint;
}

// Evaluates all tasks.
class Examination {
 public:
  Examination(const EvalFlags& flags, const Manifest& manifest, Engine& engine)
      : flags_(flags), manifest_(manifest), engine_(engine) {}

  // Evaluates the task with each of its models.
  Status run(GeneratorTask task) {
    VALORA_TRY(labels, resolve_labels(task));
    VALORA_TRY(samples, validation_samples(task));
    if (flags_.limit && samples.size() > static_cast<size_t>(*flags_.limit))
      samples.resize(static_cast<size_t>(*flags_.limit));
    VALORA_TRY(exams, exams_of(flags_, manifest_, task));
    for (const Exam& exam : exams) {
      std::vector<Sample> asked = samples;
      VALORA_CHECK(generator::apply_templates(exam.task, asked, labels));
      const bool in_text =
          (!task.head || flags_.no_head) && !(flags_.boxes && box_constraint(exam));
      if (in_text && &exam == &exams.front())
        VALORA_CHECK(generator::check_answer_lengths(engine_, exam.task, asked, "validation"));
      VALORA_TRY(result, examine(exam, std::move(asked)));
      results_.push_back(std::move(result));
    }
    bar_.clear();
    return {};
  }

  const std::vector<TaskResult>& results() const { return results_; }

 private:
  // The task's validation data, or the validation split of its teacher's data.
  Result<std::vector<Sample>> validation_samples(GeneratorTask& task) {
    if (task.validation) return generator::read_samples(*task.validation, task);
    generator::TeacherOptions options;
    options.progress = [&](int done, int total) {
      bar_.show(done, total, task.name + ": labels by its teacher");
    };
    VALORA_TRY(data, generator::ask_teacher(task, &engine_, options));
    if (data.validation.empty())
      return invalid(task.where + ": task " + task.name +
                     " has no validation data, and its teacher gave none; add \"validation\"");
    return std::move(data.validation);
  }

  Result<TaskResult> examine(const Exam& exam, std::vector<Sample> samples) {
    generator::EvaluationOptions options;
    options.adapter = exam.adapter;
    options.use_head = !flags_.no_head;
    options.concurrency = flags_.concurrency;
    VALORA_TRY(constraint, constraint_of(flags_.form));
    options.constraint = flags_.boxes ? box_constraint(exam) : std::move(constraint);
    if (flags_.boxes && options.constraint) options.use_head = false;
    options.progress = [&](int done, int total) { bar_.show(done, total, exam.task.name); };
    auto evaluation = generator::evaluate(engine_, exam.task, samples, options);
    // Some families write labels as they were trained to.
    if (!evaluation.ok() && evaluation.error().param == "--boxes" &&
        !options.constraint->choices.empty()) {
      options.constraint->choices.clear();
      evaluation = generator::evaluate(engine_, exam.task, samples, options);
    }
    if (!evaluation.ok()) return evaluation.error();
    return TaskResult{exam.task, exam.adapter, std::move(samples), std::move(*evaluation)};
  }

  const EvalFlags& flags_;
  const Manifest& manifest_;
  Engine& engine_;
  ProgressBar bar_;
  std::vector<TaskResult> results_;
};

// Returns the exit status.
Result<int> evaluate_all(EvalFlags& flags) {
  VALORA_CHECK(check(flags));
  VALORA_TRY(tasks, chosen_tasks(flags.tasks, flags.names));
  Manifest manifest;
  if (!flags.manifest.empty()) {
    VALORA_TRY(read, generator::read_manifest(flags.manifest));
    manifest = std::move(read);
  }
  NamedFolders folders(flags.hub);
  VALORA_CHECK(folders.set_model(flags.engine));
  if (!flags.adapter.empty()) {
    VALORA_TRY(path, folders.adapter(flags.adapter));
    flags.adapter = std::move(path);
  }
  VALORA_TRY(adapters, adapters_of(flags, manifest, tasks));
  VALORA_TRY(engine, open_engine(flags, adapters));
  Examination examination(flags, manifest, *engine);
  for (const GeneratorTask& task : tasks) VALORA_CHECK(examination.run(task));
  const std::vector<TaskResult>& results = examination.results();
  if (!flags.predictions.empty()) VALORA_CHECK(write_predictions(flags.predictions, results));
  if (flags.json)
    print_json(eval_json(engine->model(), results));
  else
    std::cout << eval_text(results);
  return misses_a_floor(results) ? kFloorMissed : 0;
}

int run_eval(EvalFlags& flags) {
  const auto status = evaluate_all(flags);
  return status.ok() ? *status : fail(status.error());
}

}  // namespace

void add_eval(Command app, std::function<int()>& run) {
  auto flags = std::make_shared<EvalFlags>();
  Command c = app.add_subcommand(
      "eval",
      "Measure the accuracy of the base model and adapters on tasks, through the serving engine. "
      "Exit status: 0; 3 if a task is below its floor (the base model's count only if it alone is "
      "measured); 1 after an error");
  add_engine_flags(c, flags->engine);
  add_hub_flags(c, flags->hub);
  c.add_option("--tasks", flags->tasks, "Tasks file (docs/tasks.md)").required();
  c.add_option("--task", flags->names, "Run only these tasks of the file");
  c.add_option(
      "--adapter", flags->adapter,
      "Adapter to evaluate, a folder or OWNER/NAME (default: the base model, if there is no "
      "--manifest)");
  c.add_option("--manifest", flags->manifest,
               "manifest.json with the adapter, head and question of each task");
  c.add_flag("--base", flags->base, "Also evaluate the base model");
  c.add_flag("--no-head", flags->no_head,
             "Answer with the language model even if the adapter has a head for the task");
  add_answer_form_flags(c, flags->form);
  c.add_flag("--boxes", flags->boxes,
             "Ask the base model and --adapter for boxes in the notation of the model's family, as "
             "response_format boxes does, in tasks with boxes");
  c.add_option("--limit", flags->limit, "Evaluate only the first N samples per task");
  c.add_option("--concurrency", flags->concurrency, "Highest number of concurrent samples")
      .capture_default_str();
  c.add_flag("--json", flags->json, "Print one JSON object");
  c.add_option("--predictions", flags->predictions,
               "File to write each sample with its answer and score to, as JSON lines");
  c.callback([flags, &run] { run = [flags] { return run_eval(*flags); }; });
}

}  // namespace valora::cli
