// `valora bench trace`: a workload on the schedulers side by side, on an engine or in simulated
// time.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <numeric>

#include "api/waiting_calls.h"
#include "bench/trace/simulated_trace.h"
#include "cli/adapters_at_start.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/named_option.h"
#include "cli/progress_bar.h"
#include "cli/trace_report.h"
#include "engine/serving_engine.h"
#include "scheduler/cost_file.h"
#include "sim/workload.h"

namespace valora::cli {
namespace {

using bench::TraceSummary;
using bench::TraceSystem;

struct Flags {
  EngineOptions engine;
  sim::WorkloadConfig workload;
  std::vector<double> skewness{0.5};
  std::string trace, lora_dir, costs;
  std::vector<std::string> policies;
  double ttft_target = 6;  // seconds, S-LoRA §7.1
  bool targets = false;    // the requests have it
  int rank = 16;
  int rounds = 1;
  bool simulated = false;
  bool json = false;
};

std::vector<const TraceSystem*> chosen_systems(const Flags& flags) {
  std::vector<const TraceSystem*> chosen;
  for (const TraceSystem& system : bench::trace_systems()) {
    const bool named = std::ranges::find(flags.policies, system.name) != flags.policies.end();
    if (flags.policies.empty() ? flags.simulated || !system.simulated_only() : named)
      chosen.push_back(&system);
  }
  return chosen;
}

Status check(const Flags& flags) {
  if (flags.simulated) return {};
  if (flags.engine.model_path.empty())
    return invalid("--model is needed, or --simulate COSTS", "model");
  if (flags.workload.adapters > 0 && flags.lora_dir.empty())
    return invalid("--lora-dir is needed: a folder of adapters of the model", "lora_dir");
  for (const TraceSystem* system : chosen_systems(flags))
    if (system->simulated_only())
      return invalid("--policies: " + system->name + " runs in simulated time only", "policies");
  return {};
}

Result<scheduler::StepCosts> simulated_costs(const Flags& flags) {
  if (flags.costs == "a100") return bench::a100_costs();
  VALORA_TRY(file, scheduler::read_cost_file(flags.costs));
  return file.fitted.costs;
}

Result<std::vector<LoadAdapter>> adapters_of(const Flags& flags) {
  if (flags.workload.adapters == 0) return std::vector<LoadAdapter>();
  VALORA_TRY(loads, adapters_at_start(
                        {.lora_modules = {}, .manifest = {}, .lora_dirs = {flags.lora_dir}}, {}));
  const auto wanted = static_cast<size_t>(flags.workload.adapters);
  if (loads.size() < wanted)
    return invalid(fmt::format("--lora-dir {} has {} adapters, but --adapters asks for {}",
                               flags.lora_dir, loads.size(), wanted));
  loads.resize(wanted);
  return loads;
}

// Brings each adapter into the pool: the simulator knows no loading either.
void warm_up(Engine& engine, const std::vector<std::string>& names) {
  std::vector<sim::Arrival> arrivals(names.size() + 1);
  for (size_t i = 0; i < arrivals.size(); ++i) {
    arrivals[i].prompt.assign(8, static_cast<int32_t>(i));
    arrivals[i].adapter = static_cast<scheduler::AdapterId>(i) - 1;  // the base first
  }
  (void)bench::run_live(engine, arrivals, names);
}

Result<TraceSummary> run_live(const Flags& flags, const TraceSystem& system,
                              const std::vector<sim::Arrival>& arrivals,
                              const std::vector<LoadAdapter>& adapters) {
  EngineOptions options = flags.engine;
  options.scheduling.policy = system.policy;
  options.scheduling.max_adapters = system.max_adapters;
  VALORA_TRY(engine, ServingEngine::start(options));
  std::vector<std::string> names;
  for (const LoadAdapter& load : adapters) {
    VALORA_CHECK(load_adapter_now(*engine, load));
    names.push_back(load.name);
  }
  warm_up(*engine, names);
  return bench::summary_of(arrivals, bench::run_live(*engine, arrivals, names), flags.ttft_target);
}

// What the systems run on: an engine, or simulated costs.
struct Ground {
  std::vector<LoadAdapter> adapters;
  bench::SimulatedServer server;
};

Result<Ground> ground_of(const Flags& flags) {
  Ground ground;
  if (!flags.simulated) {
    VALORA_TRY(adapters, adapters_of(flags));
    ground.adapters = std::move(adapters);
    return ground;
  }
  VALORA_TRY(costs, simulated_costs(flags));
  ground.server = {.costs = costs,
                   .max_num_seqs = flags.engine.max_num_seqs,
                   .max_num_batched_tokens = flags.engine.max_num_batched_tokens,
                   .tolerance = flags.engine.scheduling.tolerance,
                   .early_abort = flags.engine.scheduling.early_abort,
                   .rank = flags.rank};
  return ground;
}

Result<TraceSummary> run_one(const Flags& flags, const Ground& ground, const TraceSystem& system,
                             const std::vector<sim::Arrival>& arrivals) {
  if (flags.simulated)
    return bench::run_simulated(system, ground.server, arrivals, flags.ttft_target);
  return run_live(flags, system, arrivals, ground.adapters);
}

Result<std::vector<sim::Arrival>> arrivals_of(const Flags& flags, double skewness,
                                              const std::vector<sim::TraceRow>& trace) {
  sim::WorkloadConfig workload = flags.workload;
  workload.skewness = skewness;
  VALORA_TRY(arrivals, sim::make_workload(workload, trace));
  if (flags.targets)
    for (sim::Arrival& arrival : arrivals) arrival.ttft_target = from_seconds(flags.ttft_target);
  return arrivals;
}

// Each round runs the systems in another order, so that a slow moment of the machine is not
// always the same one's.
Result<std::vector<ComparedTrace>> run_all(const Flags& flags,
                                           const std::vector<sim::TraceRow>& trace) {
  VALORA_TRY(ground, ground_of(flags));
  const auto systems = chosen_systems(flags);
  const size_t rounds = flags.simulated ? 1 : static_cast<size_t>(flags.rounds);
  const size_t total = flags.skewness.size() * systems.size() * rounds;
  ProgressBar bar;
  int done = 0;
  std::vector<ComparedTrace> rows;
  for (const double skewness : flags.skewness) {
    VALORA_TRY(arrivals, arrivals_of(flags, skewness, trace));
    std::vector<std::vector<TraceSummary>> summaries(systems.size());
    for (size_t i = 0; i < rounds * systems.size(); ++i) {
      const size_t at = (i + i / systems.size()) % systems.size();
      bar.show(done++, static_cast<int>(total),
               fmt::format("{} at skewness {}", systems[at]->name, skewness));
      VALORA_TRY(summary, run_one(flags, ground, *systems[at], arrivals));
      summaries[at].push_back(summary);
    }
    for (size_t i = 0; i < systems.size(); ++i)
      rows.push_back({skewness, systems[i]->name, bench::mean_of(summaries[i])});
  }
  return rows;
}

Status bench_trace(Flags flags) {
  VALORA_CHECK(check(flags));
  std::vector<sim::TraceRow> trace;
  if (!flags.trace.empty()) {
    VALORA_TRY(rows, sim::read_azure_trace(flags.trace));
    trace = std::move(rows);
    flags.workload.process = sim::ArrivalProcess::kTrace;
  }
  VALORA_TRY(rows, run_all(flags, trace));
  if (!flags.json) {
    std::cout << text_of(rows);
    return {};
  }
  Json out = Json::array();
  for (const ComparedTrace& row : rows) out.push_back(json_of(row));
  print_json(out);
  return {};
}

void add_workload_flags(Command c, Flags& flags) {
  sim::WorkloadConfig& w = flags.workload;
  add_named_option(c, "--arrivals", w.process, sim::parse_arrival_process,
                   "poisson, or gamma (bursts by --cv)");
  c.add_option("--trace", flags.trace,
               "CSV of Azure's LLM inference trace: its times and lengths, scaled to --rate");
  c.add_option("--rate", w.rate, "Mean requests per second; 0 with --trace: as recorded")
      .capture_default_str();
  c.add_option("--cv", w.cv, "Coefficient of variation of gamma's inter-arrival times")
      .capture_default_str();
  c.add_option("--adapters", w.adapters, "Number of adapters; 0: the base model alone")
      .capture_default_str();
  add_named_option(c, "--popularity", w.shares, sim::parse_adapter_shares,
                   "How the requests spread over adapters: uniform, power-law (--alpha) or skewed "
                   "(--skewness)");
  c.add_option("--alpha", w.alpha, "Exponent of power-law").capture_default_str();
  c.add_option("--skewness", flags.skewness,
               "Shares of the requests that one adapter has, e.g. 0.2,0.5,0.9")
      .delimiter(',')
      .capture_default_str();
  c.add_option("--prompt-min", w.prompt_min, "Fewest tokens of a prompt").capture_default_str();
  c.add_option("--prompt-max", w.prompt_max, "Most tokens of a prompt").capture_default_str();
  c.add_option("--answer-min", w.answer_min, "Fewest tokens of an answer").capture_default_str();
  c.add_option("--answer-max", w.answer_max, "Most tokens of an answer").capture_default_str();
  c.add_option("--most-tokens", w.max_tokens, "Tokens to which prompt and answer are cut")
      .capture_default_str();
  c.add_option("--seconds", w.seconds, "Seconds in which requests arrive").capture_default_str();
  c.add_option("--seed", w.seed, "Seed of the requests").capture_default_str();
}

}  // namespace

void add_bench_trace(Command bench, std::function<int()>& run) {
  auto flags = std::make_shared<Flags>();
  flags->workload = {.rate = 2,
                     .shares = sim::AdapterShares::kSkewed,
                     .adapters = 8,
                     .seconds = 60,
                     .prompt_max = 256,
                     .answer_max = 128};
  Command c = bench.add_subcommand(
      "trace", "Run a workload on the scheduling policies side by side, on an engine or simulated");
  add_engine_flags(c, flags->engine, false);
  add_workload_flags(c, *flags);
  c.add_option_function<std::string>(
      "--simulate",
      [raw = flags.get()](const std::string& costs) {
        raw->simulated = true;
        raw->costs = costs;
      },
      "Simulated time instead of an engine: a file of `valora tune --cost`, or a100 (published "
      "figures of a model of 7 billion parameters); whole rival systems run too");
  c.add_option("--lora-dir", flags->lora_dir, "Folder of adapters of the model");
  c.add_option("--rank", flags->rank, "Rank of the adapters in simulated time")
      .positive_number()
      .capture_default_str();
  std::vector<std::string> names;
  for (const TraceSystem& system : bench::trace_systems()) names.push_back(system.name);
  c.add_option("--policies", flags->policies,
               "What to compare, e.g. valora,unmerged (default: all)")
      .delimiter(',')
      .one_of(names);
  c.add_option("--ttft-target", flags->ttft_target,
               "Seconds within which a first token counts as in time")
      .positive_number()
      .capture_default_str();
  c.add_flag("--targets", flags->targets,
             "Give each request this target; with --early-abort those that would miss it are "
             "refused");
  c.add_option("--rounds", flags->rounds, "Runs of each policy on an engine")
      .positive_number()
      .capture_default_str();
  c.add_flag("--json", flags->json, "Print one JSON object");
  c.callback([flags, &run] {
    run = [flags] {
      const Status status = bench_trace(*flags);
      return status.ok() ? 0 : fail(status.error());
    };
  });
}

}  // namespace valora::cli
