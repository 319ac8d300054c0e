// `valora run`: answers many pictures, videos or requests, through the serving engine without HTTP.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "api/waiting_calls.h"
#include "base/clock.h"
#include "cli/adapters_at_start.h"
#include "cli/command.h"
#include "cli/named_folders.h"
#include "cli/options/engine_flags.h"
#include "cli/options/media_flags.h"
#include "cli/progress/format.h"
#include "cli/progress/progress_bar.h"
#include "cli/progress/stop_signals.h"
#include "cli/rows/row_bodies.h"
#include "cli/rows/run_inputs.h"
#include "cli/rows/run_output.h"
#include "engine/start/start_engine.h"
#include "server/handlers/batches/ask_row.h"
#include "server/handlers/service.h"

namespace valora::cli {
namespace {

struct RunFlags {
  EngineOptions engine;
  HubFlags hub;
  AdapterSources adapters;
  std::vector<std::string> input;
  std::string output, task, adapter, answers = "auto";
  RowQuestion question;
  MediaFlags media;
  std::optional<int> in_flight;
  bool fresh = false;
};

// The name that --task or --adapter gives in requests; empty: the base model.
const std::string& chosen_name(const RunFlags& flags) {
  return flags.task.empty() ? flags.adapter : flags.task;
}

Status check_flags(const RunFlags& flags) {
  if (!flags.task.empty() && !flags.adapter.empty())
    return invalid("--task and --adapter exclude each other");
  if (!flags.task.empty() && flags.adapters.manifest.empty())
    return invalid("--task " + flags.task + " needs the --manifest that has it", "task");
  VALORA_CHECK(output_format(flags.output, false, AnswerKind::kBoxes));  // its ending
  return {};
}

// The adapters to load: all for rows that name their own, else the one that is asked.
Result<std::vector<LoadAdapter>> loads_of(RunFlags& flags, bool all, NamedFolders& folders) {
  VALORA_TRY(planned, adapters_at_start(flags.adapters, {flags.engine.model_path}, folders));
  std::vector<LoadAdapter>& loads = planned.loads;
  const std::string name = chosen_name(flags);
  const auto chosen = std::ranges::find(loads, name, &LoadAdapter::name);
  if (!name.empty() && chosen == loads.end()) {
    if (!flags.task.empty())
      return not_found("the manifest " + flags.adapters.manifest + " has no task " + flags.task,
                       "task");
    VALORA_TRY(path, folders.adapter(flags.adapter));
    loads.push_back({.name = name, .path = std::move(path)});
  }
  if (all) return std::move(loads);
  std::vector<std::string> needed = {name};
  if (chosen != loads.end()) needed.push_back(chosen->same_as);
  std::erase_if(loads, [&](const LoadAdapter& load) {
    return std::ranges::find(needed, load.name) == needed.end();
  });
  return std::move(loads);
}

Status load_all(Engine& engine, const std::vector<LoadAdapter>& loads) {
  for (const LoadAdapter& load : loads)
    if (const auto card = load_adapter_sync(engine, load); !card.ok())
      return Error{card.error().code, "adapter " + load.name + ": " + card.error().message, {}};
  return {};
}

AnswerKind kind_of(const RunFlags& flags, const std::optional<AdapterCard>& card) {
  if (flags.answers == "text") return AnswerKind::kText;
  if (flags.answers == "labels") return AnswerKind::kLabels;
  if (flags.answers == "boxes") return AnswerKind::kBoxes;
  if (!card) return AnswerKind::kText;
  if (card->form.boxes) return AnswerKind::kBoxes;
  const bool by_head =
      card->head ? !card->head->empty() && card->head != "lm" : card->heads.size() == 1;
  return by_head || !card->form.labels.empty() ? AnswerKind::kLabels : AnswerKind::kText;
}

// What the answers depend on: a run goes on only with the same.
Json settings_of(const RunFlags& flags, const RunInputs& inputs) {
  const RowQuestion& asked = flags.question;
  const AdapterSources& sources = flags.adapters;
  return {{"model", flags.engine.model_path},
          {"lora_modules", sources.lora_modules},
          {"manifest", sources.manifest},
          {"task", flags.task},
          {"adapter", flags.adapter},
          {"prompt", asked.prompt},
          {"answers", asked.answers == AnswerKind::kText     ? "text"
                      : asked.answers == AnswerKind::kLabels ? "labels"
                                                             : "boxes"},
          {"rows", inputs.is_openai() ? "openai" : "media"},
          {"max_tokens", asked.max_tokens ? Json(*asked.max_tokens) : Json()},
          {"temperature", asked.temperature},
          {"seed", asked.seed ? Json(*asked.seed) : Json()},
          {"dtype", name_of(flags.engine.dtype)},
          {"quantization", name_of(flags.engine.quantization)}};
}

// The question of all rows: from the flags, or the task's.
Status complete_question(RunFlags& flags, const RunInputs& inputs,
                         const std::optional<AdapterCard>& card) {
  RowQuestion& question = flags.question;
  question.model = chosen_name(flags);
  question.answers = inputs.is_openai() ? AnswerKind::kText : kind_of(flags, card);
  if (question.prompt.empty() && card) question.prompt = card->question;
  const bool by_head = card && question.answers == AnswerKind::kLabels;
  const bool missing = std::ranges::any_of(inputs.media, &std::string::empty, &MediaRow::prompt);
  if (question.prompt.empty() && missing && !by_head)
    return invalid("--prompt is missing: neither the task nor the rows have a question", "prompt");
  return {};
}

void set_engine(RunFlags& flags) {
  EngineOptions& engine = flags.engine;
  engine.fetch.allowed_local_path = "/";  // whoever runs the command may read any file
  engine.fetch.allow_http = true;
  engine.fetch.private_addresses = true;
  engine.fetch.use_proxy = true;
  engine.max_waiting = std::numeric_limits<int>::max();
}

class Run {
 public:
  Run(RunFlags& flags, RunInputs& inputs, RunOutput& output, Engine& engine)
      : flags_(flags),
        inputs_(inputs),
        output_(output),
        service_(std::make_shared<server::Service>(server_options(), engine)) {
    for (const MediaRow& row : inputs.media) pictures_.emplace(row.name, row.image);
  }

  Status ask_all(const std::stop_token& stop) {
    server::RowThread thread;
    server::RowRunParts parts;
    parts.count = inputs_.size();
    parts.row = [this](size_t index) { return row(index); };
    parts.write = [this](const std::vector<server::AnsweredRow>& rows) { return write(rows); };
    parts.ask = server::ask_through(service_);
    // Twice the running ones: steps stay full while answers are written.
    const int most = flags_.in_flight.value_or(2 * flags_.engine.max_num_seqs);
    parts.most_in_flight = [most] { return most; };
    server::RowRun run(std::move(parts), thread.queue());
    const std::stop_callback leave(stop, [&run] { run.leave(); });
    show();
    const Status ran = run.run();
    bar_.clear();
    return ran;
  }

 private:
  static server::ServerOptions server_options() {
    server::ServerOptions options;
    options.max_waiting = std::numeric_limits<int>::max();
    options.max_unsent_answer_bytes = size_t{4} << 30;
    return options;
  }

  Result<server::Row> row(size_t index) {
    if (!inputs_.is_openai()) return media_row(inputs_.media[index], flags_.question);
    VALORA_TRY(line, server::line_at(*inputs_.lines, inputs_.places[index]));
    return openai_row(line, flags_.question);
  }

  Status write(const std::vector<server::AnsweredRow>& rows) {
    VALORA_CHECK(
        output_.write(rows, [this](const std::string& name) { return pictures_.at(name); }));
    show();
    return {};
  }

  void show() {
    const std::string note =
        output_.failed() == 0 ? flags_.output
                              : fmt::format("{}, {} with errors", flags_.output, output_.failed());
    bar_.show(static_cast<int64_t>(output_.done().size()), static_cast<int64_t>(inputs_.total),
              note);
  }

  RunFlags& flags_;
  RunInputs& inputs_;
  RunOutput& output_;
  const std::shared_ptr<server::Service> service_;
  std::unordered_map<std::string, std::string> pictures_;  // by the rows' names
  ProgressBar bar_;
};

struct RunSummary {
  size_t rows = 0, errors = 0, missing = 0, left_out = 0;
  int exit_status = 0;
  double rate = 0;  // rows per second of this run
};

Result<RunSummary> run_all(RunFlags& flags) {
  VALORA_TRY(inputs, read_run_inputs(flags.input));
  NamedFolders folders(flags.hub);
  VALORA_CHECK(folders.set_model(flags.engine));
  VALORA_TRY(loads, loads_of(flags, inputs.is_openai(), folders));
  flags.engine.max_loras = std::max(flags.engine.max_loras, static_cast<int>(loads.size()));
  const StopSignals signals;  // from here on there is work to save
  VALORA_TRY(engine, start_engine(flags.engine));
  VALORA_CHECK(load_all(*engine, loads));
  const std::string& name = chosen_name(flags);
  const auto card = name.empty() ? std::nullopt : engine->adapter(name);
  VALORA_CHECK(complete_question(flags, inputs, card));
  const AnswerKind kind = flags.question.answers;
  VALORA_TRY(format, output_format(flags.output, inputs.is_openai(), kind));
  CocoNames coco{{}, name.empty() ? "object" : name};
  if (card) coco.labels = card->form.labels.list();
  VALORA_TRY(output, RunOutput::open({flags.output, format, kind, settings_of(flags, inputs),
                                      flags.fresh, std::move(coco)}));
  VALORA_CHECK(drop_done(inputs, output.done()));
  const size_t before = output.done().size();
  const TimePoint began = real_clock().now();
  VALORA_CHECK(Run(flags, inputs, output, *engine).ask_all(signals.token()));
  const double took = seconds(real_clock().now() - began);
  RunSummary summary{output.done().size(),
                     output.failed(),
                     0,
                     inputs.left_out,
                     signals.exit_status(),
                     static_cast<double>(output.done().size() - before) / std::max(took, 1e-9)};
  summary.missing = inputs.total - std::min(inputs.total, summary.rows);
  if (summary.missing == 0) VALORA_CHECK(output.finish());
  return summary;
}

int run_run(RunFlags& flags) {
  if (const Status s = check_flags(flags); !s.ok()) return fail(s.error());
  set_engine(flags);
  if (const Status s = apply_media(flags.media, flags.engine); !s.ok()) return fail(s.error());
  const auto summary = run_all(flags);
  if (!summary.ok()) return fail(summary.error());
  if (summary->left_out > 0)
    fmt::print(stderr, "{} files are neither pictures nor videos\n", summary->left_out);
  if (summary->missing > 0) {
    fmt::print(stderr, "stopped with {} rows in {}; the same command goes on with the other {}\n",
               summary->rows, flags.output, summary->missing);
    return summary->exit_status != 0 ? summary->exit_status : 1;
  }
  fmt::print(stderr, "{} rows in {}, {} of them with errors; {:.1f} rows/s\n", summary->rows,
             flags.output, summary->errors, summary->rate);
  return 0;
}

}  // namespace

void add_run(Command app, std::function<int()>& run) {
  auto flags = std::make_shared<RunFlags>();
  Command c = app.add_subcommand(
      "run",
      "Answer many pictures, videos or requests into one file, at full batch. A run that was ended "
      "goes on where it was (docs/batches.md)");
  add_engine_flags(c, flags->engine);
  add_hub_flags(c, flags->hub);
  c.add_option("--lora-modules", flags->adapters.lora_modules,
               "Adapters, as NAME=PATH or NAME=OWNER/NAME; repeatable");
  c.add_option("--manifest", flags->adapters.manifest, "manifest.json of `valora fuse`");
  c.add_option("--task", flags->task, "Task of the manifest that is asked");
  c.add_option("--adapter", flags->adapter,
               "Adapter that is asked: a name of --lora-modules, a folder or OWNER/NAME");
  c.add_option("--prompt", flags->question.prompt, "The question (default: the task's)");
  c.add_option("--input", flags->input,
               "Pictures and videos: a pattern such as 'pictures/**/*.jpg', a folder, files; or a "
               ".jsonl file of OpenAI's batch form, or a .csv file with the columns image, video, "
               "prompt, name")
      .required();
  c.add_option("--output", flags->output,
               "File of the answers: .jsonl, .csv, or .json for boxes as COCO has them")
      .required();
  c.add_flag("--fresh", flags->fresh, "Start the output over instead of going on with it");
  c.add_option("--answers", flags->answers,
               "Form of the answers; auto: labels or boxes if the task has them")
      .one_of({"auto", "text", "labels", "boxes"})
      .capture_default_str();
  c.add_option("--max-tokens", flags->question.max_tokens, "Highest number of tokens in an answer");
  c.add_option("--temperature", flags->question.temperature, "Sampling temperature; 0: greedy")
      .capture_default_str();
  c.add_option("--seed", flags->question.seed, "Random seed of each answer");
  c.add_option("--in-flight", flags->in_flight,
               "Rows that are asked at once (default: twice --max-num-seqs)")
      .range(1, 100'000);
  add_media_limits(c, flags->media);
  add_media_defaults(c, flags->media);
  c.callback([flags, &run] { run = [flags] { return run_run(*flags); }; });
}

}  // namespace valora::cli
