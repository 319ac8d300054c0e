// What the two benchmarks of the memory pool share: their scenarios, and the form of their results.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "bench/memory/comparison.h"
#include "cli/options/parser.h"

namespace valora::cli {

struct ScenarioFlags {
  std::vector<std::string> applications{"chat", "translation", "agents"};
  std::vector<std::string> popularities{"skewed"};
  std::vector<int> adapters{20, 50, 100};
  std::vector<double> rates{4};  // requests/s
  sim::ScenarioConfig scenario;
};

void add_scenario_flags(Command command, ScenarioFlags& flags);
// Those that differ in their rate alone follow each other, by rate.
std::vector<sim::ScenarioConfig> scenarios_of(const ScenarioFlags& flags);
Json json_of(const sim::ScenarioConfig& scenario, const std::vector<bench::ComparedRun>& runs);

}  // namespace valora::cli
