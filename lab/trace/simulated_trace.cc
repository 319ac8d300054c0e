#include "lab/trace/simulated_trace.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace valora::bench {
namespace {

sim::SimulationConfig config_of(const TraceSystem& system, const SimulatedServer& server,
                                std::span<const sim::Arrival> arrivals) {
  sim::SimulationConfig config;
  config.scheduler = {.max_num_seqs = server.max_num_seqs,
                      .max_num_batched_tokens = server.max_num_batched_tokens,
                      .max_decode_gap = server.max_decode_gap,
                      .max_media_gap = server.max_media_gap,
                      .costs = costs_of(system, server.costs),
                      .merge_in_place = system.in_place,
                      .early_abort = server.early_abort};
  config.policy = system.policy;
  config.policy_options = {.tolerance = from_seconds(server.tolerance),
                           .max_adapters = system.max_adapters};
  config.pool.blocks = server.pool_blocks;
  config.pool.prefix_caching = system.prefix_caching;
  scheduler::AdapterId last = scheduler::kBaseModel;
  for (const sim::Arrival& arrival : arrivals) last = std::max(last, arrival.adapter);
  config.adapter_ranks.assign(static_cast<size_t>(last) + 1, server.rank);
  return config;
}

// Keeps each conversation, and the requests about the same pictures, on one server.
std::vector<std::vector<sim::Arrival>> split(std::span<const sim::Arrival> arrivals, int replicas) {
  std::vector<std::vector<sim::Arrival>> parts(static_cast<size_t>(replicas));
  std::vector<std::pair<size_t, size_t>> places;  // replica, index
  size_t next = 0;
  for (const sim::Arrival& arrival : arrivals) {
    const auto& together = arrival.after ? arrival.after : arrival.pictures_of;
    const size_t replica =
        together ? places[*together].first : next++ % static_cast<size_t>(replicas);
    sim::Arrival moved = arrival;
    if (moved.id == 0) moved.id = places.size() + 1;
    if (arrival.after) moved.after = places[*arrival.after].second;
    if (arrival.previous) moved.previous = places[*arrival.previous].second;
    if (arrival.pictures_of) moved.pictures_of = places[*arrival.pictures_of].second;
    places.emplace_back(replica, parts[replica].size());
    parts[replica].push_back(std::move(moved));
  }
  return parts;
}

// Counts merges and switches over the steps.
class StepWatch {
 public:
  StepWatch(const scheduler::StepCosts& costs, Timeline* timeline)
      : costs_(costs), timeline_(timeline) {}

  void operator()(const scheduler::Scheduler&, const scheduler::StepReport& step, Duration now) {
    if (step.sequences == 0) return;
    StepRecord record{.tokens = step.tokens,
                      .sequences = step.sequences,
                      .seconds = step.seconds,
                      .mode = scheduler::mode_name(step.shape.mode),
                      .switched = step.shape.switches,
                      .merged = step.shape.merges};
    if (step.shape.merges || step.shape.restores)
      record.weights_seconds = costs_.seconds(step.shape) - costs_.running_seconds(step.shape);
    weights_seconds_ += record.weights_seconds;
    if (timeline_) timeline_->add(seconds(now), record);
  }
  double weights_seconds() const { return weights_seconds_; }

 private:
  const scheduler::StepCosts& costs_;
  Timeline* timeline_;
  double weights_seconds_ = 0;
};

// The result of one server.
struct Share {
  Status status;
  sim::SimulationReport report;
  double weights_seconds = 0;
};

Share run_server(const sim::SimulationConfig& config, const std::vector<sim::Arrival>& arrivals,
                 Timeline* timeline) {
  Share share;
  StepWatch watch(config.scheduler.costs, timeline);
  auto report = sim::simulate(config, arrivals, config.scheduler.costs, std::ref(watch));
  if (report.ok())
    share.report = std::move(report).value();
  else
    share.status = report.error();
  share.weights_seconds = watch.weights_seconds();
  return share;
}

// Servers are independent, and each core takes the next one; the figures do not depend on the
// number of cores.
std::vector<Share> run_servers(const sim::SimulationConfig& config,
                               const std::vector<std::vector<sim::Arrival>>& parts,
                               Timeline* timeline) {
  std::vector<Share> shares(parts.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < parts.size(); i = next++)
      shares[i] = run_server(config, parts[i], i == 0 ? timeline : nullptr);
  };
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::jthread> others;
  for (size_t i = 1; i < std::min(cores, parts.size()); ++i) others.emplace_back(work);
  work();
  others.clear();
  return shares;
}

}  // namespace

Result<TraceSummary> run_simulated(const TraceSystem& system, const SimulatedServer& server,
                                   std::span<const sim::Arrival> arrivals, double ttft_target,
                                   int replicas, Timeline* timeline) {
  const sim::SimulationConfig config = config_of(system, server, arrivals);
  const std::vector<std::vector<sim::Arrival>> parts = split(arrivals, replicas);
  const std::vector<Share> shares = run_servers(config, parts, timeline);
  std::vector<ServedAnswer> answers;
  size_t failed = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    VALORA_CHECK(shares[i].status);
    append(parts[i], shares[i].report, answers, failed);
  }
  TraceSummary summary = summary_of(answers, failed, ttft_target);
  for (const Share& share : shares) {
    summary.switches += share.report.switches;
    summary.merges += share.report.merges;
    summary.weights_seconds += share.weights_seconds;
  }
  return summary;
}

}  // namespace valora::bench
