#include "lab/memory/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "base/quantile.h"

namespace valora::bench {
namespace {

sim::SimulationConfig config_of(const SimulatedMachine& machine, int adapters,
                                const ComparedVariant& variant) {
  sim::SimulationConfig config;
  config.scheduler = {.max_num_seqs = 64, .max_num_batched_tokens = 2048};
  config.pool.blocks = machine.pool_blocks;
  config.pool.swap_blocks = machine.swap_blocks;
  config.pool.block_bytes = machine.block_bytes;
  config.pool.load_bandwidth = machine.link.load_bandwidth;
  config.pool.swap_bandwidth = machine.link.swap_bandwidth;
  config.pool.prefill_seconds_per_token = machine.step.prefill_token;
  variant.change(config.pool, machine.benefit);
  config.link = machine.link;
  for (int i = 0; i < adapters; ++i)
    config.adapter_blocks.push_back(i % 2 ? machine.small_adapter : machine.large_adapter);
  return config;
}

// Share of KV in the pool that no request can use, sampled every kEvery steps.
class InvalidShare {
 public:
  void operator()(const scheduler::Scheduler& scheduler, const scheduler::StepReport&, Duration) {
    constexpr int kEvery = 50;
    if (++steps_ % kEvery != 0) return;
    const memory::PoolStats stats = scheduler.pool().stats();
    const int32_t kv = stats.history_blocks + stats.running_blocks;
    if (kv == 0) return;
    sum_ += static_cast<double>(stats.invalid_blocks) / kv;
    ++samples_;
  }
  double mean() const { return samples_ > 0 ? sum_ / samples_ : 0; }

 private:
  int steps_ = 0, samples_ = 0;
  double sum_ = 0;
};

double share(uint64_t part, uint64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

// Times of one answered request, in seconds.
struct Times {
  double ttft = 0, queue = 0, adapter_wait = 0, kv_wait = 0;
  std::optional<double> tpot;
};

Times times_of(const LiveAnswer& answer) {
  const RequestTimings& t = answer.timings;
  Times times{t.ttft_seconds, t.queue_seconds, t.adapter_seconds, t.kv_seconds, {}};
  if (answer.tokens.size() > 1)
    times.tpot = t.decode_seconds / static_cast<double>(answer.tokens.size() - 1);
  return times;
}

ComparedRun summary_of(std::span<const Times> requests) {
  ComparedRun run;
  std::vector<double> ttfts;
  int decoded = 0;
  for (const Times& t : requests) {
    ttfts.push_back(t.ttft);
    run.ttft += t.ttft;
    run.adapter_wait += t.adapter_wait;
    run.kv_wait += t.kv_wait;
    run.queue += t.queue;
    run.tpot += t.tpot.value_or(0);
    decoded += t.tpot ? 1 : 0;
  }
  const auto count = static_cast<double>(std::max<size_t>(1, ttfts.size()));
  for (double* mean : {&run.ttft, &run.adapter_wait, &run.kv_wait, &run.queue}) *mean /= count;
  run.queue -= run.adapter_wait + run.kv_wait;
  run.tpot /= std::max(1, decoded);
  std::ranges::sort(ttfts);
  if (!ttfts.empty()) run.ttft_p99 = quantile(ttfts, 0.99);
  return run;
}

ComparedRun summary_of(const std::vector<sim::Arrival>& arrivals,
                       const sim::SimulationReport& report) {
  std::vector<Times> requests;
  for (size_t i = 0; i < arrivals.size(); ++i) {
    const sim::Answer& answer = report.answers[i];
    if (answer.refused) continue;
    Times times{.ttft = seconds(answer.first_token - answer.arrival),
                .queue = seconds(answer.first_scheduled - answer.arrival),
                .adapter_wait = seconds(answer.adapter_wait),
                .kv_wait = seconds(answer.kv_wait),
                .tpot = {}};
    if (arrivals[i].answer_tokens > 1)
      times.tpot = seconds(answer.end - answer.first_token) / (arrivals[i].answer_tokens - 1);
    requests.push_back(times);
  }
  ComparedRun run = summary_of(requests);
  run.kv_hits = share(report.pool.hit_tokens, report.pool.queried_tokens);
  run.adapter_hits = share(report.pool.adapter_hits, report.pool.adapter_queries);
  return run;
}

Result<ComparedRun> run_variant(const std::vector<sim::Arrival>& arrivals, int adapters,
                                const SimulatedMachine& machine, const ComparedVariant& variant) {
  InvalidShare invalid;
  VALORA_TRY(report, sim::simulate(config_of(machine, adapters, variant), arrivals, machine.step,
                                   std::ref(invalid)));
  ComparedRun run = summary_of(arrivals, report);
  run.variant = variant.name;
  run.invalid_kv = invalid.mean();
  return run;
}

// By bisection: apart from noise, TTFT never falls as the rate rises.
Result<double> peak_rate(sim::ScenarioConfig scenario, const SimulatedMachine& machine,
                         const ComparedVariant& variant) {
  double low = 0, high = 64;
  for (int i = 0; i < 8; ++i) {
    scenario.rate = (low + high) / 2;
    VALORA_TRY(run, run_variant(sim::make_scenario(scenario), scenario.adapters, machine, variant));
    (run.ttft < kPeakTtft ? low : high) = scenario.rate;
  }
  return low;
}

}  // namespace

const std::vector<ComparedVariant>& compared_variants() {
  using Pool = memory::PoolConfig;
  using Options = BenefitOptions;
  static const std::vector<ComparedVariant> variants{
      {"whole", "one pool, by measured rates of use", [](Pool&, const Options&) {}},
      {"benefit", "one pool, FastLibra's value and dependencies",
       [](Pool& c, const Options& options) {
         c.swapper.valuation = std::make_shared<Benefit>(options);
         c.dependencies = true;
       }},
      {"no dependencies", "benefit, but an adapter may leave before its KV",
       [](Pool& c, const Options& options) {
         c.swapper.valuation = std::make_shared<Benefit>(options);
         c.dependencies = false;
       }},
      {"no reward", "benefit, but adapters valued without regard to their number",
       [](Pool& c, Options options) {
         options.adapter_reward = false;
         c.swapper.valuation = std::make_shared<Benefit>(options);
         c.dependencies = true;
       }},
      {"lru", "with dependencies, the least recently used leaves first",
       [](Pool& c, const Options&) {
         c.swapper.valuation = std::make_shared<Lru>();
         c.dependencies = true;
       }},
      {"fixed share", "a fifth for adapters, LRU in each part, as vLLM",
       [](Pool& c, const Options&) {
         fix_share(c, c.blocks / 5);
         c.swapper.valuation = std::make_shared<Lru>();
       }},
      {"no history", "nothing stays after its last request, as S-LoRA",
       [](Pool& c, const Options&) { c.history = false; }}};
  return variants;
}

void fix_share(memory::PoolConfig& config, int32_t blocks) {
  config.adapter_blocks = blocks;
  config.kept_limit = std::min(config.kept_limit, blocks / 2);
}

Result<std::vector<ComparedRun>> compare(const sim::ScenarioConfig& scenario,
                                         const SimulatedMachine& machine, bool with_peak) {
  const std::vector<sim::Arrival> arrivals = sim::make_scenario(scenario);
  std::vector<ComparedRun> runs;
  for (const ComparedVariant& variant : compared_variants()) {
    VALORA_TRY(run, run_variant(arrivals, scenario.adapters, machine, variant));
    if (with_peak) {
      VALORA_TRY(peak, peak_rate(scenario, machine, variant));
      run.peak = Peak{peak, true};
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

Result<std::vector<ComparedRun>> compare_up_to_peak(const sim::ScenarioConfig& scenario,
                                                    const SimulatedMachine& machine) {
  static constexpr std::array kMeans = {
      &ComparedRun::ttft,    &ComparedRun::ttft_p99,     &ComparedRun::tpot,
      &ComparedRun::queue,   &ComparedRun::kv_wait,      &ComparedRun::adapter_wait,
      &ComparedRun::kv_hits, &ComparedRun::adapter_hits, &ComparedRun::invalid_kv};
  VALORA_TRY(peak, peak_rate(scenario, machine, compared_variants().front()));
  if (peak <= 0) return invalid("the pool is too small for any rate", "pool_memory");
  std::vector<ComparedRun> sums;
  for (int i = 1; i <= kSweptRates; ++i) {
    sim::ScenarioConfig at = scenario;
    at.rate = peak * i / kSweptRates;
    VALORA_TRY(runs, compare(at, machine, false));
    sums.resize(runs.size());
    for (size_t v = 0; v < runs.size(); ++v) {
      sums[v].variant = runs[v].variant;
      for (const auto mean : kMeans) sums[v].*mean += runs[v].*mean / kSweptRates;
    }
  }
  sums.front().peak = Peak{peak, true};
  return sums;
}

Peak peak_of(std::span<const RatePoint> points) {
  Peak peak{0, false};
  for (const RatePoint* before = nullptr; const RatePoint& point : points) {
    if (point.failed) return peak;
    if (point.ttft >= kPeakTtft && !before) return {0, true};
    if (point.ttft >= kPeakTtft)
      return {std::lerp(before->rate, point.rate,
                        (kPeakTtft - before->ttft) / (point.ttft - before->ttft)),
              true};
    peak.rate = point.rate;
    before = &point;
  }
  return peak;
}

ComparedRun summary_of(std::span<const LiveReport> rounds) {
  std::vector<Times> requests;
  size_t failed = 0;
  EngineStats sums;
  double invalid = 0;
  for (const LiveReport& round : rounds) {
    for (const LiveAnswer& answer : round.answers) {
      failed += answer.error ? 1 : 0;
      if (!answer.error) requests.push_back(times_of(answer));
    }
    sums.prefix_hits += round.stats.prefix_hits;
    sums.prefix_queries += round.stats.prefix_queries;
    sums.memory.adapter_hits += round.stats.memory.adapter_hits;
    sums.memory.adapter_queries += round.stats.memory.adapter_queries;
    invalid += round.invalid_kv / static_cast<double>(rounds.size());
  }
  ComparedRun run = summary_of(requests);
  run.failed = failed;
  run.kv_hits = share(sums.prefix_hits, sums.prefix_queries);
  run.adapter_hits = share(sums.memory.adapter_hits, sums.memory.adapter_queries);
  run.invalid_kv = invalid;
  return run;
}

std::string text_of(const std::optional<Peak>& peak) {
  if (!peak) return "–";
  return fmt::format("{}{:.1f}", peak->reached ? "" : "≥", peak->rate);
}

std::string comparison_text(const sim::ScenarioConfig& scenario,
                            const std::vector<ComparedRun>& runs) {
  std::string text =
      fmt::format("{}, {} adapters, {}, {} requests/s\n", sim::name_of(scenario.application),
                  scenario.adapters, sim::name_of(scenario.popularity), scenario.rate);
  text += fmt::format("  {:<16}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}{:>8}{:>8}\n", "", "TTFT ms",
                      "p99 ms", "TPOT ms", "queue", "adapter", "KV", "KV hit", "ad. hit", "invalid",
                      "peak/s");
  for (const ComparedRun& r : runs)
    text += fmt::format(
        "  "
        "{:<16}{:>9.0f}{:>9.0f}{:>9.1f}{:>9.1f}{:>9.1f}{:>9.1f}{:>7.0f}%{:>7.0f}%{:>7.0f}%{:>8}\n",
        r.variant, 1e3 * r.ttft, 1e3 * r.ttft_p99, 1e3 * r.tpot, 1e3 * r.queue,
        1e3 * r.adapter_wait, 1e3 * r.kv_wait, 100 * r.kv_hits, 100 * r.adapter_hits,
        100 * r.invalid_kv, text_of(r.peak));
  for (const ComparedRun& r : runs)
    if (r.failed > 0) text += fmt::format("  {}: {} requests failed\n", r.variant, r.failed);
  return text;
}

}  // namespace valora::bench
