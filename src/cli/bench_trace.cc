// `valora bench trace`: workloads on the schedulers side by side, on an engine or in simulated
// time, or on servers side by side.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>

#include "bench/trace/simulated_trace.h"
#include "cli/adapters_at_start.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/runs_progress.h"
#include "cli/trace_live.h"
#include "cli/trace_report.h"
#include "cli/trace_workload.h"
#include "scheduler/cost_file.h"

namespace valora::cli {
namespace {

using bench::TraceSummary;
using bench::TraceSystem;

struct Flags {
  EngineOptions engine;
  TraceWorkload workload;
  std::string lora_dir, costs;
  std::string fit_costs;  // file to write
  std::vector<std::string> policies;
  std::vector<bench::ServerAddress> servers;
  std::string api_key;
  int picture_size = 224;  // pixels
  int rank = 16;
  int rounds = 1;
  double timeline = 0;  // seconds per interval; 0: none
  bool simulated = false;
  bool json = false;
};

std::vector<const TraceSystem*> chosen_systems(const Flags& flags) {
  std::vector<const TraceSystem*> chosen;
  for (const TraceSystem& system : bench::trace_systems()) {
    const bool named = std::ranges::find(flags.policies, system.name) != flags.policies.end();
    const bool usual =
        !system.asked_only && (flags.simulated || system.operators == bench::Operators::kOurs);
    if (flags.policies.empty() ? usual : named) chosen.push_back(&system);
  }
  return chosen;
}

// A chosen system that brings its own operators, or null.
const TraceSystem* with_other_operators(const Flags& flags) {
  for (const TraceSystem* system : chosen_systems(flags))
    if (system->operators != bench::Operators::kOurs) return system;
  return nullptr;
}

// NAME=URL, or a URL, whose name is itself.
bench::ServerAddress address_of(const std::string& text) {
  const size_t name = text.find('=');
  if (name == std::string::npos || name > text.find("://")) return {text, text, {}};
  return {text.substr(0, name), text.substr(name + 1), {}};
}

// What is compared: a system of this engine, or a server.
struct Rival {
  std::string name;
  const TraceSystem* system = nullptr;
  const bench::ServerAddress* server = nullptr;
};

std::vector<Rival> rivals_of(const Flags& flags) {
  std::vector<Rival> rivals;
  for (const bench::ServerAddress& server : flags.servers)
    rivals.push_back({server.name, nullptr, &server});
  if (rivals.empty())
    for (const TraceSystem* system : chosen_systems(flags))
      rivals.push_back({system->name, system, nullptr});
  return rivals;
}

Status check_servers(const Flags& flags) {
  if (flags.simulated) return invalid("--url and --simulate exclude each other", "url");
  if (!flags.policies.empty())
    return invalid("--policies: the policy of a server is its own", "policies");
  if (flags.timeline > 0)
    return invalid("--timeline: a server does not tell its steps", "timeline");
  return {};
}

// The dtype, which `auto` leaves to the model, is checked once the engine has started.
Status check_operators(const Flags& flags) {
  const TraceSystem* other = with_other_operators(flags);
  if (!other) return {};
  if (flags.engine.device != DeviceKind::kCpu || flags.engine.kernels != KernelBackend::kNative)
    return invalid(
        "--policies: the operators of " + other->name + " need --device cpu and --kernels native",
        "policies");
  if (!flags.fit_costs.empty())
    return invalid("--fit-costs: the steps of " + other->name + " cost something else",
                   "fit_costs");
  return {};
}

Status check(const Flags& flags) {
  const auto& replicas = flags.workload.replicas;
  if (!flags.servers.empty()) VALORA_CHECK(check_servers(flags));
  if (flags.simulated && !flags.fit_costs.empty())
    return invalid("--fit-costs needs an engine", "fit_costs");
  if (flags.simulated) return {};
  if (!flags.fit_costs.empty() && !flags.servers.empty())
    return invalid("--fit-costs: a server does not tell its steps", "fit_costs");
  if (replicas.size() != 1 || replicas[0] != 1)
    return invalid("--replicas needs --simulate", "replicas");
  if (!flags.servers.empty()) return {};
  if (flags.engine.model_path.empty())
    return invalid("--model is needed, or --url URL, or --simulate COSTS", "model");
  if (std::ranges::max(flags.workload.adapters) > 0 && flags.lora_dir.empty())
    return invalid("--lora-dir is needed: a folder of adapters of the model", "lora_dir");
  return check_operators(flags);
}

Result<scheduler::StepCosts> simulated_costs(const Flags& flags) {
  if (flags.costs == "a100") return bench::a100_costs();
  VALORA_TRY(file, scheduler::read_cost_file(flags.costs));
  return file.fitted.costs;
}

Result<std::vector<LoadAdapter>> adapters_of(const Flags& flags) {
  const int most = std::ranges::max(flags.workload.adapters);
  if (most == 0) return std::vector<LoadAdapter>();
  VALORA_TRY(found, adapters_at_start(
                        {.lora_modules = {}, .manifest = {}, .lora_dirs = {flags.lora_dir}}, {}));
  std::vector<LoadAdapter> loads = std::move(found.loads);
  const auto wanted = static_cast<size_t>(most);
  if (loads.size() < wanted)
    return invalid(fmt::format("--lora-dir {} has {} adapters, but --adapters asks for {}",
                               flags.lora_dir, loads.size(), wanted));
  loads.resize(wanted);
  return loads;
}

LiveTrace live_setting(const Flags& flags) {
  return {.engine = flags.engine,
          .picture_size = flags.picture_size,
          .timeline = flags.timeline,
          .ttft_target = flags.workload.ttft_target};
}

// What the systems run on: an engine, or simulated costs.
struct Ground {
  std::unique_ptr<TraceEngine> engine;
  bench::SimulatedServer server;
};

Result<Ground> ground_of(const Flags& flags) {
  Ground ground;
  if (!flags.servers.empty()) return ground;
  if (!flags.simulated) {
    VALORA_TRY(adapters, adapters_of(flags));
    VALORA_TRY(engine, TraceEngine::start(live_setting(flags), chosen_systems(flags), adapters));
    ground.engine = std::move(engine);
    return ground;
  }
  VALORA_TRY(costs, simulated_costs(flags));
  ground.server = {.costs = costs,
                   .max_num_seqs = flags.engine.max_num_seqs,
                   .max_num_batched_tokens = flags.engine.max_num_batched_tokens,
                   .max_decode_gap = flags.engine.max_decode_gap.value_or(0),
                   .max_media_gap = flags.engine.max_decode_gap.value_or(kMediaGap),
                   .tolerance = flags.engine.scheduling.tolerance,
                   .early_abort = flags.engine.scheduling.early_abort,
                   .rank = flags.rank};
  return ground;
}

// A run of a rival at a point.
struct Run {
  const TracePoint& point;
  const Rival& rival;
  size_t system;  // its index, if it is one
  const std::vector<sim::Arrival>& arrivals;
};

Result<TraceOutcome> run_one(const Flags& flags, const Ground& ground, const Run& run,
                             std::function<void(size_t)> progress) {
  if (run.rival.server)
    return run_on_server(live_setting(flags), *run.rival.server, run.arrivals, run.point.adapters,
                         std::move(progress));
  if (!flags.simulated) return ground.engine->run(run.system, run.arrivals, std::move(progress));
  std::optional<bench::Timeline> timeline;
  if (flags.timeline > 0) timeline.emplace(flags.timeline);
  VALORA_TRY(summary, bench::run_simulated(*run.rival.system, ground.server, run.arrivals,
                                           flags.workload.ttft_target, run.point.replicas,
                                           timeline ? &*timeline : nullptr));
  return TraceOutcome{summary, std::move(timeline)};
}

// Each round runs the systems in another order, so that a slow moment of the machine is not
// always the same one's.
Result<std::vector<ComparedTrace>> run_point(const Flags& flags, const Ground& ground,
                                             const TracePoint& point, const std::string& name,
                                             const std::vector<sim::Arrival>& arrivals,
                                             RunsProgress& progress) {
  const std::vector<Rival> rivals = rivals_of(flags);
  const size_t rounds = flags.simulated ? 1 : static_cast<size_t>(flags.rounds);
  // Steps with other operators make the machine seem slower than it is.
  const bool corrected = !with_other_operators(flags);
  std::vector<std::vector<TraceSummary>> summaries(rivals.size());
  std::vector<ComparedTrace> rows;
  for (const Rival& rival : rivals) rows.push_back({.point = point, .system = rival.name});
  for (size_t i = 0; i < rounds * rivals.size(); ++i) {
    const size_t at = (i + i / rivals.size()) % rivals.size();
    auto shown = progress.begin(rivals[at].name + ", " + name, arrivals.size());
    VALORA_TRY(outcome,
               run_one(flags, ground, {point, rivals[at], at, arrivals}, std::move(shown)));
    summaries[at].push_back(outcome.summary);
    const double latency = outcome.summary.token_latency;
    rows[at].token_latencies.push_back(latency);
    rows[at].at_costs_speed.push_back(latency / (corrected ? outcome.summary.cost_correction : 1));
    rows[at].timeline = std::move(outcome.timeline);
  }
  for (size_t i = 0; i < rivals.size(); ++i) rows[i].summary = bench::mean_of(summaries[i]);
  compare_rounds(rows);
  return rows;
}

Result<std::vector<ComparedTrace>> run_all(const Flags& flags,
                                           const std::vector<sim::TraceRow>& trace) {
  VALORA_TRY(points, points_of(flags.workload));
  VALORA_TRY(ground, ground_of(flags));
  const std::vector<std::string> names = names_of(points);
  const int rounds = flags.simulated ? 1 : flags.rounds;
  RunsProgress progress(points.size() * rivals_of(flags).size() * static_cast<size_t>(rounds));
  std::vector<ComparedTrace> rows;
  for (size_t i = 0; i < points.size(); ++i) {
    VALORA_TRY(arrivals, arrivals_of(flags.workload, points[i], trace));
    VALORA_TRY(more, run_point(flags, ground, points[i], names[i], arrivals, progress));
    std::ranges::move(more, std::back_inserter(rows));
  }
  if (!flags.fit_costs.empty()) {
    VALORA_TRY(file, ground.engine->fitted_costs());
    VALORA_CHECK(scheduler::write_cost_file(flags.fit_costs, file));
  }
  return rows;
}

Status bench_trace(const Flags& flags) {
  VALORA_CHECK(check(flags));
  std::vector<sim::TraceRow> trace;
  if (!flags.workload.trace_file.empty()) {
    VALORA_TRY(rows, sim::read_azure_trace(flags.workload.trace_file));
    trace = std::move(rows);
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

void add_policies_flag(Command& c, Flags& flags) {
  std::vector<std::string> names;
  for (const TraceSystem& system : bench::trace_systems()) names.push_back(system.name);
  c.add_option(
       "--policies", flags.policies,
       "What to compare, e.g. valora,unmerged (default: all; on an engine, whole systems with "
       "their own operators only if they are named)")
      .delimiter(',')
      .one_of(names);
}

}  // namespace

void add_bench_trace(Command bench, std::function<int()>& run) {
  auto flags = std::make_shared<Flags>();
  flags->workload.retrieval.first = {
      .shares = sim::AdapterShares::kSkewed, .seconds = 60, .prompt_max = 256, .answer_max = 128};
  Command c = bench.add_subcommand(
      "trace",
      "Run a workload on the scheduling policies side by side, on an engine or simulated, or on "
      "servers");
  add_engine_flags(c, flags->engine, false);
  add_workload_flags(c, flags->workload);
  c.add_option_function<std::string>(
      "--simulate",
      [raw = flags.get()](const std::string& costs) {
        raw->simulated = true;
        raw->costs = costs;
      },
      "Simulated time instead of an engine: a file of `valora tune --cost`, or a100 (published "
      "figures of a model of 7 billion parameters); whole rival systems run too");
  c.add_option_function<std::vector<std::string>>(
       "--url",
       [raw = flags.get()](const std::vector<std::string>& servers) {
         for (const std::string& server : servers) raw->servers.push_back(address_of(server));
       },
       "Running servers instead of an engine, side by side: URLs without /v1, or NAME=URL. Each "
       "needs the adapters loaded, and must send token ids (valora, vLLM)")
      .delimiter(',');
  c.add_option("--api-key", flags->api_key, "API key to send to servers").envname("VALORA_API_KEY");
  c.add_option("--lora-dir", flags->lora_dir, "Folder of adapters of the model");
  c.add_option("--rank", flags->rank, "Rank of the adapters in simulated time")
      .positive_number()
      .capture_default_str();
  add_policies_flag(c, *flags);
  c.add_option("--picture-size", flags->picture_size,
               "Pixels of each side of the pictures that an engine gets")
      .positive_number()
      .capture_default_str();
  c.add_option("--timeline", flags->timeline,
               "Add what the steps did to --json, in intervals of so many seconds")
      .positive_number();
  c.add_option("--fit-costs", flags->fit_costs,
               "Write to this file what the steps of all runs on an engine cost, for --simulate");
  c.add_option(
       "--rounds", flags->rounds,
       "Runs of each policy, in turns. Then the table has the token latency over that of the first "
       "policy in the same round, too (median): as measured, and, if all have our operators, at "
       "the "
       "speed of the costs' time")
      .positive_number()
      .capture_default_str();
  c.add_flag("--json", flags->json, "Print one JSON object");
  c.callback([flags, &run] {
    run = [flags] {
      for (bench::ServerAddress& server : flags->servers) server.api_key = flags->api_key;
      const Status status = bench_trace(*flags);
      return status.ok() ? 0 : fail(status.error());
    };
  });
}

}  // namespace valora::cli
