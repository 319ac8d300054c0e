#include "lab/cli/memory_scenarios.h"

#include <algorithm>

namespace valora::cli {

std::vector<sim::ScenarioConfig> scenarios_of(const ScenarioFlags& flags) {
  std::vector<double> rates = flags.rates;
  std::ranges::sort(rates);
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
        for (const double rate : rates) {
          scenario.rate = rate;
          scenarios.push_back(scenario);
        }
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
                           {"peak_rate", run.peak ? Json(run.peak->rate) : Json()},
                           {"peak_reached", run.peak ? Json(run.peak->reached) : Json()},
                           {"failed", run.failed}});
  return out;
}

void add_scenario_flags(Command c, ScenarioFlags& flags) {
  c.add_option("--applications", flags.applications, "Of chat, translation and agents")
      .delimiter(',')
      .one_of({"chat", "translation", "agents"})
      .capture_default_str();
  c.add_option("--popularity", flags.popularities, "Of uniform, distinct and skewed")
      .delimiter(',')
      .one_of({"uniform", "distinct", "skewed"})
      .capture_default_str();
  c.add_option("--adapters", flags.adapters, "Numbers of adapters")
      .delimiter(',')
      .positive_number()
      .capture_default_str();
  c.add_option("--rate", flags.rates, "Mean requests per second")
      .delimiter(',')
      .positive_number()
      .capture_default_str();
  c.add_option("--seconds", flags.scenario.seconds, "Seconds in which requests arrive")
      .positive_number()
      .capture_default_str();
  c.add_option("--seed", flags.scenario.seed, "Seed of the requests").capture_default_str();
}

}  // namespace valora::cli
