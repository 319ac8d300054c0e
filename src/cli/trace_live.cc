#include "cli/trace_live.h"

#include <fmt/format.h>

#include <utility>

#include "api/waiting_calls.h"
#include "bench/serve/image_maker.h"
#include "bench/serve/served_models.h"
#include "cli/named_option.h"
#include "engine/serving_engine.h"

namespace valora::cli {
namespace {

using bench::TraceSummary;

constexpr int kServerTimeout = 3600;  // seconds per request: a queue may be long

// Brings each adapter into the pool: the simulator knows no loading either.
void warm_up(bench::LiveTarget& target, const std::vector<std::string>& names) {
  std::vector<sim::Arrival> arrivals(names.size() + 1);
  for (size_t i = 0; i < arrivals.size(); ++i) {
    arrivals[i].prompt.assign(8, static_cast<int32_t>(i));
    arrivals[i].adapter = static_cast<scheduler::AdapterId>(i) - 1;  // the base first
  }
  (void)bench::run_live(target, arrivals, names);
}

// Steps of an engine as a timeline. The engine calls on_step() on its own thread.
class TimelineObserver final : public StepObserver {
 public:
  explicit TimelineObserver(double width) : timeline_(width) {}
  void on_step(const StepRecord& step) override {
    timeline_.add(seconds(real_clock().now() - begin_), step);
  }
  bench::Timeline take() { return std::move(timeline_); }

 private:
  const TimePoint begin_ = real_clock().now();
  bench::Timeline timeline_;
};

bench::LiveOptions live_options(const LiveTrace& setting, std::function<void(size_t)> progress) {
  const bench::ImageLoad image{
      .count = 1, .width = setting.picture_size, .height = setting.picture_size};
  return {.picture =
              [image](size_t index, int i) {
                const auto seed = index * 1000 + static_cast<size_t>(i);
                return value_or_throw(bench::random_image_url(image, seed));
              },
          .progress = std::move(progress)};
}

}  // namespace

Result<TraceOutcome> run_live(const LiveTrace& setting, const bench::TraceSystem& system,
                              const std::vector<sim::Arrival>& arrivals,
                              const std::vector<LoadAdapter>& adapters,
                              std::function<void(size_t)> progress) {
  EngineOptions options = setting.engine;
  options.scheduling.policy = system.policy;
  options.scheduling.max_adapters = system.max_adapters;
  options.prefix_caching = options.prefix_caching && system.prefix_caching;
  VALORA_TRY(engine, ServingEngine::start(options));
  std::vector<std::string> names;
  for (const LoadAdapter& load : adapters) {
    VALORA_CHECK(load_adapter_now(*engine, load));
    names.push_back(load.name);
  }
  bench::EngineTarget target(*engine);
  warm_up(target, names);
  const EngineStats before = engine->stats();
  const auto run = [&] {
    bench::LiveReport report =
        bench::run_live(target, arrivals, names, live_options(setting, std::move(progress)));
    report.stats.mode_switches -= before.mode_switches;
    report.stats.merges -= before.merges;
    report.stats.merge_seconds -= before.merge_seconds;
    return bench::summary_of(arrivals, report, setting.ttft_target);
  };
  if (setting.timeline == 0) return TraceOutcome{run(), {}};
  TimelineObserver observer(setting.timeline);
  engine->set_observer(&observer);
  const TraceSummary summary = run();
  engine->set_observer(nullptr);
  return TraceOutcome{summary, observer.take()};
}

Result<TraceOutcome> run_on_server(const LiveTrace& setting, const bench::ServerAddress& server,
                                   const std::vector<sim::Arrival>& arrivals, int adapters,
                                   std::function<void(size_t)> progress) {
  bench::HttpClient client(server.url, server.api_key, kServerTimeout);
  VALORA_TRY(models, bench::served_models(client));
  if (models.base.empty())
    return invalid(fmt::format("{}: /v1/models does not list the base model", server.url), "url");
  if (models.adapters.size() < static_cast<size_t>(adapters))
    return invalid(fmt::format("{} has {} adapters, but --adapters asks for {}", server.url,
                               models.adapters.size(), adapters),
                   "adapters");
  models.adapters.resize(static_cast<size_t>(adapters));
  bench::ServerTarget target(server, models.base, kServerTimeout);
  warm_up(target, models.adapters);
  const bench::LiveReport report = bench::run_live(target, arrivals, models.adapters,
                                                   live_options(setting, std::move(progress)));
  return TraceOutcome{bench::summary_of(arrivals, report, setting.ttft_target), {}};
}

}  // namespace valora::cli
