// Shared by the two memory pool benchmarks: their scenarios and the format of their results.
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "cli/options/parser.h"
#include "lab/memory/comparison.h"

namespace valora::cli {

struct ScenarioFlags {
  std::vector<std::string> applications{"chat", "translation", "agents"};
  std::vector<std::string> popularities{"skewed"};
  std::vector<int> adapters{20, 50, 100};
  std::vector<double> rates{4};  // requests/s
  sim::ScenarioConfig scenario;
};

void add_scenario_flags(Command command, ScenarioFlags& flags);
// Scenarios that differ only in rate are adjacent, sorted by rate.
std::vector<sim::ScenarioConfig> scenarios_of(const ScenarioFlags& flags);
Json json_of(const sim::ScenarioConfig& scenario, const std::vector<bench::ComparedRun>& runs);

}  // namespace valora::cli
