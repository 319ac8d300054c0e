// `valora tune`: measures tile sizes on this machine for the shapes of a model, or the costs of its
// steps, and writes the file that engines use.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/file.h"
#include "bench/engine/tune_costs.h"
#include "cli/command.h"
#include "cli/named_option.h"
#include "cli/progress/progress_bar.h"
#include "engine/dtype.h"
#include "engine/rank_options.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/tiles/find_tiles.h"
#include "kernels/tiles/profiler.h"
#include "kernels/tiles/tile_file.h"
#include "kernels/tiles/tune.h"
#include "models/registry.h"
#include "ops/parallel.h"

namespace valora::cli {
namespace {

struct TuneFlags {
  EngineOptions engine;  // model_path, dtype, ranks, rounding
  std::string output;
  std::vector<int64_t> ranks{8, 16, 32, 64};
  int64_t max_tokens = 2048;
  std::optional<int> threads;
  double seconds = 0;
  bool resume = false;
  bool cost = false;
};

// One thread, since more give noisy results on a busy machine.
int threads_for_tiles(const TuneFlags& flags) { return flags.threads.value_or(1); }
double seconds_of(const TuneFlags& flags) {
  return flags.seconds > 0 ? flags.seconds : flags.cost ? 150 : 300;
}

Status check(const TuneFlags& flags) {
  for (const int64_t rank : flags.ranks)
    if (rank < 1 || rank > 256) return invalid("--ranks must be between 1 and 256");
  if (flags.max_tokens < 1 || flags.max_tokens > kernels::kMostTokens)
    return invalid("--max-tokens must be between 1 and " + std::to_string(kernels::kMostTokens));
  if (!(flags.seconds >= 0)) return invalid("--seconds must be more than 0");
  if (flags.threads.value_or(0) < 0) return invalid("--threads must be 0 or more");
  if (flags.engine.dtype == ComputeDtype::kFloat16)
    return invalid(
        "--dtype float16 runs on GPUs only, but tiles are for CPUs; use float32 or bfloat16");
  return check_rank_options(flags.engine);
}

Status check_tiles(const TuneFlags& flags) {
  const EngineOptions &o = flags.engine, defaults;
  if (o.quantization != defaults.quantization || o.activations != defaults.activations ||
      o.kv_cache_dtype != defaults.kv_cache_dtype || o.rank_cores != defaults.rank_cores)
    return invalid(
        "--quantization, --activations, --kv-cache-dtype and --rank-cores need --cost: tiles are "
        "of products of floats, measured on one thread");
  return {};
}

// The sizes of the products of a model's linears on all ranks, from its configuration. Only the
// dtype is read from the checkpoint.
Result<kernels::TuneSpace> space_of(const TuneFlags& flags) {
  const EngineOptions& options = flags.engine;
  const int ranks = options.tensor_parallel_size;
  VALORA_TRY(config, models::read_model_config(options.model_path));
  VALORA_TRY(family, models::find_family(config));
  VALORA_TRY(spec, models::read_model_spec(*family, config));
  VALORA_CHECK(models::check_ranks(spec, ranks));
  at::ScalarType stored = at::kFloat;
  if (options.dtype == ComputeDtype::kAuto) {
    VALORA_TRY(weights, models::Weights::open(options.model_path));
    stored = weights->stored_dtype();
  }
  VALORA_TRY(dtype, models::resolve_dtype(scalar_type(options.dtype), config, stored,
                                          at::Device(at::kCPU)));
  kernels::TuneSpace space{.linears = {},
                           .ranks = flags.ranks,
                           .max_tokens = flags.max_tokens,
                           .float32 = dtype == at::kFloat,
                           .isa = kernels::isa()};
  const auto add = [](auto& sizes, std::pair<int64_t, int64_t> size) {
    if (std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
  };
  for (const adapters::Module& module : spec.modules.modules())
    for (int rank = 0; rank < ranks && module.kind == adapters::ModuleKind::kLinear; ++rank) {
      const adapters::MatrixSlice slice = slice_of(module, rank, ranks);
      add(space.linears, {slice.out.size(), slice.in.size()});
    }
  for (int rank = 0; rank < ranks; ++rank)  // the output layer
    add(space.others, {adapters::share_of(spec.vocab, rank, ranks).size(), spec.hidden});
  return space;
}

Result<std::string> output_path(const TuneFlags& flags) {
  if (!flags.output.empty()) return flags.output;
  const std::string path = kernels::own_tiles_path(kernels::this_hardware());
  if (path.empty())
    return invalid("neither $XDG_CACHE_HOME nor $HOME is set; choose the file with --output");
  return path;
}

// With --resume: the entries that the file has already.
Result<std::vector<kernels::TileEntry>> known_entries(const TuneFlags& flags,
                                                      const std::string& path) {
  if (!flags.resume || !file_exists(path)) return std::vector<kernels::TileEntry>();
  VALORA_TRY(file, kernels::read_tile_file(path));
  if (file.hardware != kernels::this_hardware())
    return invalid("--resume: " + path +
                   " was measured on other hardware: " + file.hardware.text());
  return std::vector<kernels::TileEntry>(file.table.entries().begin(), file.table.entries().end());
}

constexpr const char* kKinds[] = {"dense", "shrink", "expand"};

std::string describe(const kernels::ProductShape& s) {
  return fmt::format("{} of {} tokens, {} to {}", kKinds[static_cast<int>(s.kind)], s.m, s.k, s.n);
}

void print_gain(const std::string& over, const kernels::TuneGain& gain) {
  fmt::print("  {:<44} {:.3f}x as fast (geometric mean), {:.2f}x at most\n", over, gain.mean,
             gain.worst);
}

void print_gains(const std::vector<kernels::TunedShape>& tuned) {
  if (tuned.empty()) return;
  const kernels::TuneGains gains = kernels::gains_of(tuned);
  const kernels::CpuTile& t = gains.single_tile;
  print_gain("over the formula", gains.formula);
  for (size_t kind = 0; kind < std::size(kKinds); ++kind) {
    std::vector<kernels::TunedShape> some;
    for (const kernels::TunedShape& shape : tuned)
      if (static_cast<size_t>(shape.shape.kind) == kind) some.push_back(shape);
    if (!some.empty())
      print_gain(fmt::format("  {} products ({} shapes)", kKinds[kind], some.size()),
                 kernels::gains_of(some).formula);
  }
  print_gain(fmt::format("over the best single tile ({} x {}, {} chains)", t.rows, t.panels * 16,
                         t.chains),
             gains.single);
}

// Writes the entries measured so far, at most once per second.
class Journal {
 public:
  Journal(std::string path, std::vector<kernels::TileEntry> entries, const Clock& clock)
      : path_(std::move(path)),
        entries_(std::move(entries)),
        clock_(clock),
        written_(clock.now()) {}

  void add(const kernels::TunedShape& tuned) {
    entries_.push_back({kernels::TileKey::of(tuned.shape), tuned.chosen});
    if (clock_.now() - written_ > std::chrono::seconds(1) && status_.ok()) status_ = write();
  }
  Status write() {
    written_ = clock_.now();
    return kernels::write_tile_file(path_,
                                    {kernels::this_hardware(), kernels::TileTable(entries_)});
  }

 private:
  std::string path_;
  std::vector<kernels::TileEntry> entries_;
  const Clock& clock_;
  TimePoint written_;
  Status status_;
};

Status tune_model(const TuneFlags& flags) {
  VALORA_CHECK(check(flags));
  VALORA_CHECK(check_tiles(flags));
  VALORA_CHECK(kernels::select_isa());
  if (threads_for_tiles(flags) > 0) at::set_num_threads(threads_for_tiles(flags));
  VALORA_TRY(space, space_of(flags));
  VALORA_TRY(path, output_path(flags));
  VALORA_TRY(known, known_entries(flags, path));
  const auto shapes = kernels::shapes_to_tune(space);
  fmt::print("{} shapes of {} sizes of linears and ranks {}, {}, {}, {} threads\n", shapes.size(),
             space.linears.size() + space.others.size(), fmt::join(flags.ranks, ", "),
             space.float32 ? "float32" : "bfloat16", kernels::isa_name(space.isa),
             at::get_num_threads());
  std::fflush(stdout);
  const RealClock clock;
  Journal journal(path, known, clock);
  VALORA_CHECK(journal.write());  // fail early if the file cannot be written
  kernels::TileProfiler profiler(clock, ops::torch_parallel());
  std::vector<kernels::TunedShape> tuned;
  int done = 0;
  {
    ProgressBar bar;
    tuned = kernels::tune(
        shapes, kernels::TileTable(known),
        [&](const kernels::ProductShape& shape, const kernels::CpuTile& tile) {
          return profiler.seconds(shape, tile);
        },
        clock, seconds_of(flags),
        [&](const kernels::TuneProgress& progress) {
          if (progress.last) journal.add(*progress.last);
          if (progress.last)
            bar.show(progress.done, progress.total, describe(progress.last->shape));
          done = progress.done;
        });
  }
  VALORA_CHECK(journal.write());
  fmt::print("{} shapes measured now\n", tuned.size());
  print_gains(tuned);
  if (done < static_cast<int>(shapes.size()))
    fmt::print(
        "{} shapes are not measured and use the nearest measured one; continue with --resume\n",
        shapes.size() - static_cast<size_t>(done));
  fmt::print("written to {}\n", path);
  return {};
}

void print_costs(const bench::TunedCosts& tuned) {
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
  VALORA_CHECK(check(flags));
  bench::CostTuning tuning{.engine = flags.engine, .seconds = seconds_of(flags)};
  // Fixed: costs hold for one number of threads.
  const int threads = flags.threads.value_or(0);
  tuning.engine.threads = threads > 0 ? threads : at::get_num_threads();
  Result<bench::TunedCosts> tuned = [&] {
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

int run_tune(const TuneFlags& flags) {
  const Status status = flags.cost ? tune_costs_of(flags) : tune_model(flags);
  return status.ok() ? 0 : fail(status.error());
}

}  // namespace

void add_tune(Command app, std::function<int()>& run) {
  auto flags = std::make_shared<TuneFlags>();
  Command c = app.add_subcommand(
      "tune",
      "Measure the best tile sizes of a model's matrix products on this CPU, or what its steps "
      "cost");
  c.add_option("--model", flags->engine.model_path, "Folder of a Hugging Face checkpoint")
      .required();
  add_named_option(c, "--dtype", flags->engine.dtype, parse_dtype,
                   "Data type of weights: auto (the checkpoint's), float32 or bfloat16");
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
