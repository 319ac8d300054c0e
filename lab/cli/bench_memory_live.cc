// `valora bench memory-live`: the memory pool against its rivals, on an engine in real time.
#include <algorithm>
#include <iostream>
#include <span>

#include "api/waiting_calls.h"
#include "cli/options/adapter_folders.h"
#include "cli/progress/format.h"
#include "cli/progress/progress_bar.h"
#include "engine/start/start_engine.h"
#include "lab/cli/command.h"
#include "lab/cli/experiment_flags.h"
#include "lab/cli/memory_scenarios.h"
#include "serving/loop/core.h"

namespace valora::cli {
namespace {

struct BenchMemoryLiveFlags {
  EngineOptions engine;
  bench::Experiments experiments;
  ScenarioFlags scenarios;
  std::string lora_dir;
  std::vector<std::string> variants;
  int rounds = 2;
  bool json = false;
};

struct Adapters {
  std::vector<LoadAdapter> loads;
  std::vector<std::string> names;
};

Result<Adapters> adapters_of(const BenchMemoryLiveFlags& flags) {
  VALORA_TRY(loads, adapter_folders(flags.lora_dir));
  const int wanted = std::ranges::max(flags.scenarios.adapters);
  if (static_cast<int>(loads.size()) < wanted)
    return invalid("--lora-dir " + flags.lora_dir + " has " + std::to_string(loads.size()) +
                   " adapters, but --adapters asks for " + std::to_string(wanted));
  Adapters adapters{std::move(loads), {}};
  for (const LoadAdapter& load : adapters.loads) adapters.names.push_back(load.name);
  return adapters;
}

Result<bench::LiveReport> run_variant(const BenchMemoryLiveFlags& flags,
                                      const bench::ComparedVariant& variant,
                                      const sim::ScenarioConfig& scenario,
                                      const Adapters& adapters) {
  VALORA_TRY(changes, bench::changes_of(flags.engine.scheduling, flags.experiments));
  const auto experiments = std::move(changes.core);
  changes.core = [&](serving::CoreConfig& core) -> Status {
    VALORA_CHECK(experiments(core));
    variant.change(core.pool, flags.experiments.benefit);
    return Status();
  };
  VALORA_TRY(engine, start_engine(flags.engine, real_clock(), changes));
  for (int i = 0; i < scenario.adapters; ++i)
    VALORA_CHECK(load_adapter_sync(*engine, adapters.loads[static_cast<size_t>(i)]));
  return bench::run_live(*engine, sim::make_scenario(scenario), adapters.names);
}

bool chosen(const BenchMemoryLiveFlags& flags, const bench::ComparedVariant& variant) {
  return flags.variants.empty() ||
         std::ranges::find(flags.variants, variant.name) != flags.variants.end();
}

// Each round runs the variants in a different order, so that slow phases of the machine do not
// always hit the same one.
Result<std::vector<bench::ComparedRun>> compare_live(const BenchMemoryLiveFlags& flags,
                                                     const sim::ScenarioConfig& scenario,
                                                     const Adapters& adapters, ProgressBar& bar) {
  std::vector<const bench::ComparedVariant*> variants;
  for (const bench::ComparedVariant& variant : bench::compared_variants())
    if (chosen(flags, variant)) variants.push_back(&variant);
  std::vector<std::vector<bench::LiveReport>> rounds(variants.size());
  const int total = flags.rounds * static_cast<int>(variants.size());
  for (int i = 0; i < total; ++i) {
    const size_t round = static_cast<size_t>(i) / variants.size();
    const size_t v = (static_cast<size_t>(i) + round) % variants.size();
    bar.show(i, total, variants[v]->name);
    VALORA_TRY(report, run_variant(flags, *variants[v], scenario, adapters));
    rounds[v].push_back(std::move(report));
  }
  std::vector<bench::ComparedRun> runs;
  for (size_t v = 0; v < variants.size(); ++v) {
    runs.push_back(bench::summary_of(rounds[v]));
    runs.back().variant = variants[v]->name;
  }
  return runs;
}

struct ComparedScenario {
  sim::ScenarioConfig scenario;
  std::vector<bench::ComparedRun> runs;
};

// True if the mean TTFT is meaningless: requests failed, or there were none.
bool no_figure(const bench::ComparedRun& run) { return run.failed > 0 || run.ttft == 0; }

// Sets the peaks of scenarios that differ only in rate.
void set_peaks(std::span<ComparedScenario> rates) {
  for (size_t v = 0; v < rates[0].runs.size(); ++v) {
    std::vector<bench::RatePoint> points;
    for (const ComparedScenario& at : rates)
      points.push_back({at.scenario.rate, at.runs[v].ttft, no_figure(at.runs[v])});
    for (ComparedScenario& at : rates) at.runs[v].peak = bench::peak_of(points);
  }
}

std::string peaks_text(std::span<const bench::ComparedRun> runs) {
  std::string text = "  requests/s up to which the mean TTFT is below 0.5 s:";
  for (const bench::ComparedRun& run : runs)
    text += "  " + run.variant + " " + bench::text_of(run.peak);
  return text + "\n";
}

int run_bench_memory_live(const BenchMemoryLiveFlags& flags) {
  if (!flags.engine.memory.pool_bytes)
    return fail(invalid("--pool-memory is needed, to say how scarce memory is"));
  const auto adapters = adapters_of(flags);
  if (!adapters.ok()) return fail(adapters.error());
  Json out = Json::array();
  const size_t rates = flags.scenarios.rates.size();
  std::vector<ComparedScenario> compared;  // scenarios that differ only in rate
  for (const sim::ScenarioConfig& scenario : scenarios_of(flags.scenarios)) {
    ProgressBar bar;
    const auto runs = compare_live(flags, scenario, *adapters, bar);
    if (!runs.ok()) return fail(runs.error());
    compared.push_back({scenario, *runs});
    if (!flags.json) std::cout << bench::comparison_text(scenario, *runs) << std::flush;
    if (compared.size() < rates) continue;
    if (rates > 1) set_peaks(compared);
    if (rates > 1 && !flags.json) std::cout << peaks_text(compared[0].runs) << std::flush;
    for (const ComparedScenario& at : compared) out.push_back(json_of(at.scenario, at.runs));
    compared.clear();
  }
  if (flags.json) print_json(out);
  return 0;
}

}  // namespace

void add_bench_memory_live(Command bench, std::function<int()>& run) {
  auto flags = std::make_shared<BenchMemoryLiveFlags>();
  Command c = bench.add_subcommand(
      "memory-live",
      "Compare the memory pool with its rivals as `memory` does, but on a model in real time. With "
      "several rates, the one up to which the mean TTFT is below 0.5 s is estimated");
  add_engine_flags(c, flags->engine);
  add_experiment_flags(c, flags->experiments);
  flags->scenarios.applications = {"chat"};
  flags->scenarios.adapters = {20};
  flags->scenarios.scenario.seconds = 120;
  flags->scenarios.rates = {0.5};
  add_scenario_flags(c, flags->scenarios);
  c.add_option("--lora-dir", flags->lora_dir, "Folder of adapters of the model").required();
  std::vector<std::string> names;
  for (const bench::ComparedVariant& variant : bench::compared_variants())
    names.push_back(variant.name);
  c.add_option("--variants", flags->variants, "What to compare, e.g. whole,lru (default: all)")
      .delimiter(',')
      .one_of(names);
  c.add_option("--rounds", flags->rounds, "Runs of each variant")
      .positive_number()
      .capture_default_str();
  c.add_flag("--json", flags->json, "Print one JSON object");
  c.callback([flags, &run] { run = [flags] { return run_bench_memory_live(*flags); }; });
}

}  // namespace valora::cli
