// `valora bench memory`: the memory pool beside its rivals and without its parts, simulated.
#include <algorithm>
#include <iostream>

#include "bench/memory/book_keeping.h"
#include "bench/memory/comparison.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/progress_bar.h"

namespace valora::cli {
namespace {

struct Flags {
  std::vector<std::string> applications{"chat", "translation", "agents"};
  std::vector<std::string> popularities{"skewed"};
  std::vector<int> adapters{20, 50, 100};
  sim::ScenarioConfig scenario{.rate = 4};
  bool peak = false;
  bool json = false;
};

std::vector<sim::ScenarioConfig> scenarios_of(const Flags& flags) {
  std::vector<sim::ScenarioConfig> scenarios;
  for (const auto application :
       {sim::Application::kChat, sim::Application::kTranslation, sim::Application::kAgent})
    for (const auto popularity :
         {sim::Popularity::kUniform, sim::Popularity::kDistinct, sim::Popularity::kSkewed})
      for (const int adapters : flags.adapters) {
        const auto asked = [](const std::vector<std::string>& names, const char* name) {
          return std::ranges::find(names, name) != names.end();
        };
        if (!asked(flags.applications, name_of(application)) ||
            !asked(flags.popularities, name_of(popularity)))
          continue;
        sim::ScenarioConfig scenario = flags.scenario;
        scenario.application = application;
        scenario.popularity = popularity;
        scenario.adapters = adapters;
        scenarios.push_back(scenario);
      }
  return scenarios;
}

Json json_of(const sim::ScenarioConfig& scenario, const std::vector<bench::ComparedRun>& runs) {
  Json out = {{"application", name_of(scenario.application)},
              {"popularity", name_of(scenario.popularity)},
              {"adapters", scenario.adapters},
              {"rate", scenario.rate},
              {"runs", Json::array()}};
  for (const bench::ComparedRun& run : runs)
    out["runs"].push_back({{"variant", run.variant},
                           {"ttft_seconds", run.ttft},
                           {"ttft_p99_seconds", run.ttft_p99},
                           {"tpot_seconds", run.tpot},
                           {"queue_seconds", run.queue},
                           {"adapter_seconds", run.adapter_wait},
                           {"kv_seconds", run.kv_wait},
                           {"kv_hits", run.kv_hits},
                           {"adapter_hits", run.adapter_hits},
                           {"invalid_kv", run.invalid_kv},
                           {"peak_rate", run.peak_rate}});
  return out;
}

int run_bench_memory(const Flags& flags) {
  const auto scenarios = scenarios_of(flags);
  Json out = Json::array();
  std::string text;
  {
    ProgressBar bar;
    for (size_t i = 0; i < scenarios.size(); ++i) {
      bar.show(static_cast<int>(i), static_cast<int>(scenarios.size()),
               name_of(scenarios[i].application));
      const auto runs = bench::compare(scenarios[i], {}, flags.peak);
      if (!runs.ok()) return fail(runs.error());
      out.push_back(json_of(scenarios[i], *runs));
      text += bench::comparison_text(scenarios[i], *runs);
    }
  }
  const bench::BookKeepingTimes times = bench::measure_book_keeping();
  if (flags.json)
    print_json(Json{{"scenarios", out},
                    {"match_seconds", times.match},
                    {"insert_seconds", times.insert},
                    {"decide_seconds", times.decide}});
  else
    std::cout << text << bench::book_keeping_text(times);
  return 0;
}

}  // namespace

void add_bench_memory(Command bench, std::function<int()>& run) {
  auto flags = std::make_shared<Flags>();
  Command c = bench.add_subcommand(
      "memory",
      "Compare the memory pool with a fixed share for adapters, with keeping no history, and "
      "without its parts, in simulated time on a model of 7 billion parameters");
  c.add_option("--applications", flags->applications, "Of chat, translation and agents")
      .delimiter(',')
      .one_of({"chat", "translation", "agents"})
      .capture_default_str();
  c.add_option("--popularity", flags->popularities, "Of uniform, distinct and skewed")
      .delimiter(',')
      .one_of({"uniform", "distinct", "skewed"})
      .capture_default_str();
  c.add_option("--adapters", flags->adapters, "Numbers of adapters")
      .delimiter(',')
      .positive_number()
      .capture_default_str();
  c.add_option("--rate", flags->scenario.rate, "Mean requests per second")
      .positive_number()
      .capture_default_str();
  c.add_option("--seconds", flags->scenario.seconds, "Simulated seconds")
      .positive_number()
      .capture_default_str();
  c.add_option("--seed", flags->scenario.seed, "Seed of the requests").capture_default_str();
  c.add_flag("--peak", flags->peak, "Also search the highest rate with a mean TTFT below 0.5 s");
  c.add_flag("--json", flags->json, "Print one JSON object");
  c.callback([flags, &run] { run = [flags] { return run_bench_memory(*flags); }; });
}

}  // namespace valora::cli
