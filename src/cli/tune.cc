// `valora tune`: measures tile sizes for a model's shapes, or the costs of its steps, and writes
// the file that engines use.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "cli/command.h"
#include "cli/named_folders.h"
#include "cli/options/named_option.h"
#include "cli/progress/progress_bar.h"
#include "cli/tune_tiles.h"
#include "engine/ranks/rank_options.h"
#include "kernels/tiles/tile_key.h"
#include "tuning/tune_costs.h"

namespace valora::cli {
namespace {

Status check(const TuneFlags& flags) {
  for (const int64_t rank : flags.ranks)
    if (rank < 1 || rank > 256) return invalid("--ranks must be between 1 and 256");
  if (flags.max_tokens < 1 || flags.max_tokens > kernels::kMostTokens)
    return invalid("--max-tokens must be between 1 and " + std::to_string(kernels::kMostTokens));
  if (!(flags.seconds >= 0)) return invalid("--seconds must be more than 0");
  if (flags.threads.value_or(0) < 0) return invalid("--threads must be 0 or more");
  if (flags.engine.dtype == ComputeDtype::kFloat16 && !flags.on_gpu())
    return invalid("--dtype float16 runs on GPUs only; use float32 or bfloat16");
  return check_rank_options(flags.engine);
}

void print_costs(const tuning::TunedCosts& tuned) {
  const scheduler::StepCosts& c = tuned.file.fitted.costs;
  fmt::print("{} steps of {} on {}\n", tuned.steps, tuned.file.model, tuned.file.machine);
  fmt::print(
      "  a step {:.2f} ms, with {:.0f} tokens {:.2f}; from there on a prompt token {:.3f}, a "
      "decoded token {:.3f}\n",
      1e3 * c.step, c.free_tokens, 1e3 * (c.step + c.free_tokens * c.token),
      1e3 * (c.token + c.prefill_token), 1e3 * (c.token + c.decode_token));
  fmt::print("  1,000 attended keys: {:.3f} ms in prefill, {:.3f} in decode\n",
             1e6 * c.prefill_context, 1e6 * c.decode_context);
  fmt::print("  an adapter of rank 16 beside the weights {:.2f} ms, and {:.4f} per token\n",
             1e3 * (c.segment + 16 * c.rank), 1e3 * 16 * c.token_rank);
  fmt::print("  a merge of rank 16 {:.1f} ms\n", 1e3 * (c.merge + 16 * c.merged_rank));
  fmt::print(
      "error on {} steps left out of the fit, each at the memory speed measured around it: median "
      "{:.1f} %, 95th percentile {:.1f} %\n",
      tuned.steps - tuned.file.fitted.steps, 100 * tuned.file.fitted.error_median,
      100 * tuned.file.fitted.error_p95);
  fmt::print(
      "  corrected by each step, as a server does: median {:.1f} %, 95th percentile {:.1f} %\n",
      100 * tuned.corrected.error_median, 100 * tuned.corrected.error_p95);
  for (const auto& [mode, fitted] : tuned.modes)
    fmt::print("  {:<9} {} steps: median {:.1f} %, 95th percentile {:.1f} %\n", mode, fitted.steps,
               100 * fitted.error_median, 100 * fitted.error_p95);
}

Status tune_costs_of(const TuneFlags& flags) {
  tuning::CostTuning tuning{.engine = flags.engine, .seconds = flags.seconds_or_default()};
  // The number of threads is fixed, because costs hold only for one.
  const int threads = flags.threads.value_or(0);
  tuning.engine.threads = threads > 0 ? threads : at::get_num_threads();
  Result<tuning::TunedCosts> tuned = [&] {
    ProgressBar bar;
    return tune_costs(tuning, [&](double done, const std::string& what) {
      bar.show(static_cast<int>(done), static_cast<int>(tuning.seconds), what);
    });
  }();
  if (!tuned.ok()) return tuned.error();
  const std::string path = flags.output.empty()
                               ? scheduler::own_costs_path(tuned->file.machine, tuned->file.model)
                               : flags.output;
  if (path.empty())
    return invalid("neither $XDG_CACHE_HOME nor $HOME is set; choose the file with --output");
  print_costs(*tuned);
  VALORA_CHECK(scheduler::write_cost_file(path, tuned->file));
  fmt::print("written to {}\n", path);
  return {};
}

int run_tune(TuneFlags& flags) {
  const Status checked = check(flags);
  if (!checked.ok()) return fail(checked.error());
  if (const Status s = NamedFolders(flags.hub).set_model(flags.engine); !s.ok())
    return fail(s.error());
  const Status status = flags.cost ? tune_costs_of(flags) : tune_tiles(flags);
  return status.ok() ? 0 : fail(status.error());
}

}  // namespace

void add_tune(Command app, std::function<int()>& run) {
  auto flags = std::make_shared<TuneFlags>();
  Command c = app.add_subcommand(
      "tune",
      "Measure the best tile sizes of a model's matrix products on this CPU or GPU, or what its "
      "steps cost");
  c.add_option("--model", flags->engine.model_path,
               "Folder of a Hugging Face checkpoint, or OWNER/NAME on its hub")
      .required();
  add_mmproj_flag(c, flags->engine.mmproj);
  add_hub_flags(c, flags->hub);
  add_named_option(
      c, "--dtype", flags->engine.dtype, parse_dtype,
      "Data type of weights: auto (the checkpoint's), float32, bfloat16 or float16 (GPUs only)");
  add_named_option(c, "--device", flags->engine.device, parse_device,
                   "Device: cpu, or cuda (the products of adapters alone)");
  add_rounding_flags(c, flags->engine);
  add_rank_flags(c, flags->engine);
  c.add_option("--ranks", flags->ranks, "Adapter ranks to measure")
      .delimiter(',')
      .capture_default_str();
  c.add_option("--max-tokens", flags->max_tokens, "Highest number of tokens per step to measure")
      .capture_default_str();
  c.add_flag("--cost", flags->cost,
             "Measure the costs of steps and merges instead, by which --scheduling-policy valora "
             "chooses its modes");
  c.add_option("--threads", flags->threads,
               "Compute threads; 0: one per core. Default: 1 for tiles, whose measurements more "
               "threads make noisy; 0 with --cost, which holds for this number of threads");
  c.add_option("--output", flags->output,
               "File of the result (default: where engines on this machine look for it)");
  c.add_option("--seconds", flags->seconds,
               "Stop after this many seconds (default: 300, or 150 with --cost)");
  c.add_flag("--resume", flags->resume, "Keep the table's entries and measure the missing ones");
  c.callback([flags, &run] { run = [flags] { return run_tune(*flags); }; });
}

}  // namespace valora::cli
