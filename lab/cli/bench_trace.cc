// `valora bench trace`: runs workloads on several schedulers, on an engine, in simulated time or on
// servers.
#include <iostream>
#include <memory>

#include "cli/progress/format.h"
#include "lab/cli/command.h"
#include "lab/cli/experiment_flags.h"
#include "lab/cli/trace_comparison.h"
#include "lab/trace/systems.h"

namespace valora::cli {
namespace {

struct BenchTraceFlags {
  TraceComparison comparison;
  std::string api_key;  // used for all servers
  bool json = false;
};

// Parses NAME=URL, or a plain URL, which is its own name.
bench::ServerAddress address_of(const std::string& text) {
  const size_t name = text.find('=');
  if (name == std::string::npos || name > text.find("://")) return {text, text, {}};
  return {text.substr(0, name), text.substr(name + 1), {}};
}

Status bench_trace(const BenchTraceFlags& flags) {
  VALORA_TRY(rows, run_comparison(flags.comparison));
  if (!flags.json) {
    std::cout << text_of(rows);
    return {};
  }
  Json out = Json::array();
  for (const bench::ComparedTrace& row : rows) out.push_back(json_of(row));
  print_json(out);
  return {};
}

void add_policies_flag(Command& c, std::vector<std::string>& policies) {
  std::vector<std::string> names;
  for (const bench::TraceSystem& system : bench::trace_systems()) names.push_back(system.name);
  c.add_option(
       "--policies", policies,
       "What to compare, e.g. valora,unmerged (default: all; on an engine, whole systems with "
       "their own operators only if they are named)")
      .delimiter(',')
      .one_of(names);
}

}  // namespace

void add_bench_trace(Command bench, std::function<int()>& run) {
  auto flags = std::make_shared<BenchTraceFlags>();
  TraceComparison& comparison = flags->comparison;
  comparison.workload.retrieval.first = {
      .shares = sim::AdapterShares::kSkewed, .seconds = 60, .prompt_max = 256, .answer_max = 128};
  Command c = bench.add_subcommand(
      "trace",
      "Run a workload on the scheduling policies side by side, on an engine or simulated, or on "
      "servers");
  add_engine_flags(c, comparison.engine, false);
  add_experiment_flags(c, comparison.experiments);
  add_workload_flags(c, comparison.workload);
  c.add_option_function<std::string>(
      "--simulate",
      [&comparison](const std::string& costs) {
        comparison.simulated = true;
        comparison.costs = costs;
      },
      "Simulated time instead of an engine: a file of `valora tune --cost`; a100 (published "
      "figures of a model of 7 billion parameters); or 7b or 34b (sizes and datasheets, on GPUs by "
      "--tensor-parallel-size); whole rival systems run too");
  c.add_option_function<std::vector<std::string>>(
       "--url",
       [&comparison](const std::vector<std::string>& servers) {
         for (const std::string& server : servers) comparison.servers.push_back(address_of(server));
       },
       "Running servers instead of an engine, side by side: URLs without /v1, or NAME=URL. Each "
       "needs the adapters loaded, and must send token ids (valora, vLLM)")
      .delimiter(',');
  c.add_option("--api-key", flags->api_key, "API key to send to servers").envname("VALORA_API_KEY");
  c.add_option("--lora-dir", comparison.lora_dir, "Folder of adapters of the model");
  c.add_option("--rank", comparison.rank, "Rank of the adapters in simulated time")
      .positive_number()
      .capture_default_str();
  add_policies_flag(c, comparison.policies);
  c.add_option("--picture-size", comparison.picture_size,
               "Pixels of each side of the pictures that an engine gets")
      .positive_number()
      .capture_default_str();
  c.add_option("--timeline", comparison.timeline,
               "Add what the steps did to --json, in intervals of this many seconds")
      .positive_number();
  c.add_option("--fit-costs", comparison.fit_costs,
               "Write to this file what the steps of all runs on an engine cost, for --simulate");
  c.add_option(
       "--rounds", comparison.rounds,
       "Runs of each policy, in turns. Then the table has the token latency over that of the first "
       "policy in the same round, too (median): as measured, and, if all have our operators, at "
       "the speed of the costs' time")
      .positive_number()
      .capture_default_str();
  c.add_flag("--json", flags->json, "Print one JSON object");
  c.callback([flags, &run] {
    run = [flags] {
      for (bench::ServerAddress& server : flags->comparison.servers)
        server.api_key = flags->api_key;
      const Status status = bench_trace(*flags);
      return status.ok() ? 0 : fail(status.error());
    };
  });
}

}  // namespace valora::cli
