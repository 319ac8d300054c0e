// `valora bench memory`: simulates the memory pool against its rivals, and with single features
// turned off.
#include <iostream>

#include "cli/progress/format.h"
#include "cli/progress/progress_bar.h"
#include "lab/cli/command.h"
#include "lab/cli/memory_scenarios.h"
#include "lab/memory/book_keeping.h"

namespace valora::cli {
namespace {

struct BenchMemoryFlags {
  ScenarioFlags scenarios;
  bench::SimulatedMachine machine;
  int64_t pool = 0, swap = 0;  // bytes
  bool peak = false, up_to_peak = false;
  bool json = false;
};

bench::SimulatedMachine machine_of(const BenchMemoryFlags& flags) {
  bench::SimulatedMachine machine = flags.machine;
  machine.pool_blocks = static_cast<int32_t>(flags.pool / machine.block_bytes);
  machine.swap_blocks = static_cast<int32_t>(flags.swap / machine.block_bytes);
  return machine;
}

int run_bench_memory(const BenchMemoryFlags& flags) {
  if (flags.peak && flags.up_to_peak)
    return fail(invalid("--peak and --up-to-peak exclude each other", "up_to_peak"));
  ScenarioFlags wanted = flags.scenarios;
  if (flags.up_to_peak) wanted.rates = {0};  // the rates are searched for
  const auto scenarios = scenarios_of(wanted);
  Json out = Json::array();
  std::string text;
  {
    ProgressBar bar;
    for (size_t i = 0; i < scenarios.size(); ++i) {
      bar.show(static_cast<int>(i), static_cast<int>(scenarios.size()),
               name_of(scenarios[i].application));
      sim::ScenarioConfig scenario = scenarios[i];
      const auto runs = flags.up_to_peak ? bench::compare_up_to_peak(scenario, machine_of(flags))
                                         : bench::compare(scenario, machine_of(flags), flags.peak);
      if (!runs.ok()) return fail(runs.error());
      if (flags.up_to_peak) scenario.rate = runs->front().peak->rate;
      out.push_back(json_of(scenario, *runs));
      out.back()["up_to_peak"] = flags.up_to_peak;
      text += (flags.up_to_peak ? "Means over ten rates up to the last one: " : "") +
              bench::comparison_text(scenario, *runs);
    }
  }
  const bench::BookKeepingTimes times = bench::measure_book_keeping();
  if (flags.json)
    print_json(Json{{"scenarios", out},
                    {"match_seconds", times.match},
                    {"insert_seconds", times.insert},
                    {"decide_seconds", times.decide},
                    {"plan_seconds", times.plan}});
  else
    std::cout << text << bench::book_keeping_text(times);
  return 0;
}

}  // namespace

void add_bench_memory(Command bench, std::function<int()>& run) {
  auto flags = std::make_shared<BenchMemoryFlags>();
  Command c = bench.add_subcommand(
      "memory",
      "Compare the memory pool with a fixed share for adapters, with keeping no history, and "
      "without its parts, in simulated time on a model of 7 billion parameters");
  add_scenario_flags(c, flags->scenarios);
  flags->pool = flags->machine.pool_blocks * flags->machine.block_bytes;
  flags->swap = flags->machine.swap_blocks * flags->machine.block_bytes;
  c.add_option("--pool-memory", flags->pool, "Bytes of the pool, e.g. 36G")
      .human_integer()
      .capture_default_str();
  c.add_option("--swap-space", flags->swap, "Bytes of host memory for KV that leaves the pool")
      .human_integer()
      .capture_default_str();
  c.add_option("--recency", flags->machine.benefit.recency_seconds,
               "With benefit: seconds in which the value of a recent use fades")
      .positive_number()
      .capture_default_str();
  c.add_flag("--peak", flags->peak, "Also search the highest rate with a mean TTFT below 0.5 s");
  c.add_flag("--up-to-peak", flags->up_to_peak,
             "Instead of --rate: means over ten rates up to the peak of the whole pool, as "
             "FastLibra's figure 11");
  c.add_flag("--json", flags->json, "Print one JSON object");
  c.callback([flags, &run] { run = [flags] { return run_bench_memory(*flags); }; });
}

}  // namespace valora::cli
