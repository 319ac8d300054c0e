// `valora fuse`: trains the fewest adapters that keep the accuracy floors of all tasks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/chosen_tasks.h"
#include "cli/command.h"
#include "cli/named_folders.h"
#include "cli/options/engine_flags.h"
#include "cli/options/named_option.h"
#include "cli/progress/format.h"
#include "cli/progress/progress_bar.h"
#include "cli/progress/stop_signals.h"
#include "generator/fusion/fusion.h"
#include "ops/device/compute_threads.h"

namespace valora::cli {
namespace {

using generator::FusionReport;
using generator::FusionStep;

struct FuseFlags {
  generator::FusionOptions fusion;
  HubFlags hub;
  std::string tasks, order = "given", packing = "last";
  std::vector<std::string> targets{"decoder"}, names;
  bool json = false;
};

Status settle(FuseFlags& flags) {
  generator::FusionOptions& o = flags.fusion;
  VALORA_TRY(order, generator::parse_order(flags.order));
  o.order = order;
  VALORA_TRY(packing, generator::parse_packing(flags.packing));
  o.packing = packing;
  o.targets.clear();
  for (const std::string& name : flags.targets) {
    VALORA_TRY(part, generator::parse_target_part(name));
    o.targets.push_back(part);
  }
  return {};
}

void print_step(const FusionStep& step) {
  std::vector<std::string> values;
  for (const auto& [task, accuracy] : step.accuracies)
    values.push_back(fmt::format("{} {:.3f}", task, accuracy));
  fmt::print("{} + {} (rank {}{}): {} — {}; {:.0f} s, loss {:.3f} to {:.3f}\n", step.adapter,
             step.task, step.rank, step.activated ? ", activated" : "", fmt::join(values, ", "),
             step.why, step.seconds + step.evaluation_seconds, step.first_loss, step.last_loss);
  std::fflush(stdout);
}

std::string percent(std::optional<double> value) {
  return value ? fmt::format("{:.1f}", 100 * *value) : "-";
}

void print_report(const FusionReport& report, const std::string& output) {
  fmt::print("\n{:<16} {:<20} {:<13} {:>6} {:>6} {:>7} {:>7} {:>6}  {}\n", "task", "type", "metric",
             "base", "alone", "fused", "gain", "floor", "adapter");
  for (const auto& task : report.tasks)
    for (const auto& adapter : report.adapters) {
      const auto found = adapter.accuracies.find(task.name);
      if (found == adapter.accuracies.end()) continue;
      const bool below =
          std::ranges::find(adapter.below_floor, task.name) != adapter.below_floor.end();
      fmt::print("{:<16} {:<20} {:<13} {:>6} {:>6} {:>7} {:>+7.1f} {:>6}  {}{}\n", task.name,
                 task.type, task.metric, percent(task.base), percent(task.alone),
                 percent(found->second), 100 * (found->second - task.base), percent(task.floor),
                 adapter.name, below ? "  BELOW ITS FLOOR" : "");
    }
  fmt::print(
      "\n{} tasks in {} adapters, {:.0f} s, {} MiB at most; {}/report.html, {}/manifest.json\n",
      report.tasks.size(), report.adapters.size(), report.seconds, report.peak_bytes >> 20, output,
      output);
}

bool misses_a_floor(const FusionReport& report) {
  return std::ranges::any_of(report.adapters,
                             [](const auto& adapter) { return !adapter.below_floor.empty(); });
}

Result<FusionReport> fuse(FuseFlags& flags, const std::stop_token& stop) {
  VALORA_CHECK(settle(flags));
  VALORA_TRY(tasks, chosen_tasks(flags.tasks, flags.names));
  ops::set_compute_threads(flags.fusion.engine.threads);
  ProgressBar bar;
  generator::FusionEvents events;
  events.stop = stop;
  events.progress = [&](const std::string& what, int64_t done, int64_t total,
                        const std::string& note) {
    bar.show(done, total, note.empty() ? what : what + ", " + note);
  };
  events.step = [&](const FusionStep& step) {
    bar.clear();
    if (!flags.json) print_step(step);
  };
  return generator::Fusion(flags.fusion, events).run(tasks);
}

int run_fuse(FuseFlags& flags) {
  // Before signals are taken for requests to save the work.
  if (const Status s = NamedFolders(flags.hub).set_model(flags.fusion.engine); !s.ok())
    return fail(s.error());
  const StopSignals signals;
  const auto report = fuse(flags, signals.token());
  if (!report.ok() && report.error().code == ErrorCode::kCancelled && signals.exit_status() != 0) {
    fmt::print(stderr, "stopped by a signal; the same command continues from {}\n",
               flags.fusion.output);
    return signals.exit_status();
  }
  if (!report.ok()) return fail(report.error());
  if (flags.json)
    print_json(generator::to_json(*report));
  else
    print_report(*report, flags.fusion.output);
  return misses_a_floor(*report) ? kFloorMissed : 0;
}

void add_training_flags(Command c, generator::TrainingOptions& o) {
  c.add_option("--steps", o.steps, "Optimizer steps per attempt").capture_default_str();
  c.add_option("--batch", o.batch, "Samples per step").capture_default_str();
  c.add_option("--tokens-per-pass", o.tokens_per_pass,
               "Highest number of tokens per forward pass; a step is split into several passes, "
               "and fewer tokens take less memory")
      .capture_default_str();
  c.add_option("--learning-rate", o.learning_rate,
               "Peak learning rate; linear warm-up over --warmup, then cosine decay")
      .capture_default_str();
  c.add_option("--warmup", o.warmup, "Share of the steps with a rising learning rate")
      .capture_default_str();
  c.add_option("--weight-decay", o.weight_decay, "Weight decay of AdamW").capture_default_str();
  c.add_option("--clip", o.clip,
               "Highest gradient norm; larger gradients are scaled down; 0: no limit")
      .capture_default_str();
  c.add_option("--dropout", o.dropout, "Dropout of the adapters' inputs").capture_default_str();
  c.add_flag("--recompute", o.recompute,
             "Recompute activations in the backward pass instead of keeping them, to save memory");
  c.add_option("--evaluate-every", o.evaluate_every,
               "Steps between evaluations, of which the best weights are kept; 0: no evaluation "
               "during training")
      .capture_default_str();
  c.add_option("--patience", o.patience, "Evaluations without improvement before training stops")
      .capture_default_str();
  c.add_option("--checkpoint-every", o.checkpoint_every,
               "Steps between checkpoints; 0: only at the end and when it is stopped")
      .capture_default_str();
}

}  // namespace

void add_fuse(Command app, std::function<int()>& run) {
  auto flags = std::make_shared<FuseFlags>();
  generator::FusionOptions& o = flags->fusion;
  o.training.checkpoint_every = 50;
  Command c =
      app.add_subcommand("fuse",
                         "Train the fewest adapters that keep every task's accuracy floor. Exit "
                         "status: 0; 3 if a task is below its floor in every adapter; 143 or 130 "
                         "after SIGTERM or SIGINT, which save a checkpoint; 1 after an error");
  c.add_option("--model", o.engine.model_path,
               "Folder of a Hugging Face checkpoint, or OWNER/NAME on its hub")
      .required();
  add_mmproj_flag(c, o.engine.mmproj);
  add_hub_flags(c, flags->hub);
  c.add_option("--tasks", flags->tasks, "Tasks file, YAML or JSON (docs/tasks.md)").required();
  c.add_option("--output", o.output,
               "Output folder of the adapters, manifest.json and report.html; an interrupted run "
               "continues from it")
      .required();
  c.add_option("--task", flags->names, "Run only these tasks, in this order");
  c.add_flag("--restart", o.restart, "Start over instead of continuing an earlier run");
  c.add_flag("--replace", o.replace,
             "Drop tasks of the output folder's manifest that this run leaves out");
  c.add_flag("--json", flags->json, "Print the report as JSON");
  c.add_option(
       "--rank", o.ranks,
       "Adapter ranks in ascending order; higher ranks are tried before a task gets a new adapter")
      .delimiter(',')
      .capture_default_str();
  c.add_option("--alpha-per-rank", o.alpha_per_rank,
               "lora_alpha / rank, the scale of an adapter's update")
      .capture_default_str();
  c.add_option("--targets", flags->targets,
               "Model parts whose linears are adapted: decoder, projector, vision")
      .delimiter(',')
      .capture_default_str();
  add_training_flags(c, o.training);
  c.add_option("--replay", o.replay,
               "Share of samples of an adapter's earlier tasks while it learns a new one; 0: none, "
               "as in the VaLoRA paper")
      .capture_default_str();
  c.add_option("--order", flags->order,
               "Order of the tasks: given, random, or hardest (furthest below its floor first)")
      .capture_default_str();
  c.add_option(
       "--packing", flags->packing,
       "Existing adapters to try for a task before it gets a new one: last, or first-fit (all)")
      .capture_default_str();
  c.add_flag("--activated", o.activated,
             "Try adapters first that act from the answer's turn on, so that they share the base "
             "model's KV of picture and question; a task whose floor they miss gets a plain one");
  c.add_flag("--alone", o.alone, "Also train one adapter per task, for comparison");
  c.add_flag("!--heads-only", o.language_with_head,
             "Train tasks that have a head on the head only, not on the answer's text");
  c.add_option("--validation-limit", o.validation_limit,
               "Highest number of validation samples per task");
  c.add_option("--seed", o.seed, "Random seed").capture_default_str();
  add_named_option(c, "--dtype", o.engine.dtype, parse_dtype,
                   "Data type of the computation: auto, float32 or bfloat16");
  add_quantization_flag(c, o.engine);
  c.add_option("--threads", o.engine.threads,
               "Compute threads; 0: one per core, fewer while other programs keep cores busy")
      .capture_default_str();
  c.add_option("--chat-template", o.engine.chat_template,
               "Jinja chat template file, instead of the model folder's template");
  c.callback([flags, &run] { run = [flags] { return run_fuse(*flags); }; });
}

}  // namespace valora::cli
