#include "lab/engine/trace_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include "api/waiting_calls.h"
#include "lab/ops/system_products.h"
#include "lab/policies/policies.h"
#include "lab/serve/image_maker.h"
#include "lab/serve/served_models.h"

namespace valora::bench {
namespace {

constexpr int kServerTimeout = 3600;  // seconds per request: the queue may be long

// Brings each adapter into the pool, because the simulator does not model loading either.
void warm_up(LiveTarget& target, const std::vector<std::string>& names) {
  std::vector<sim::Arrival> arrivals(names.size() + 1);
  for (size_t i = 0; i < arrivals.size(); ++i) {
    arrivals[i].prompt.assign(8, static_cast<int32_t>(i));
    arrivals[i].adapter = static_cast<scheduler::AdapterId>(i) - 1;  // the base model first
  }
  (void)run_live(target, arrivals, names);
}

// Records an engine's steps as a timeline. The engine calls on_step() on its own thread.
class TimelineObserver final : public StepObserver {
 public:
  explicit TimelineObserver(double width) : timeline_(width) {}
  void on_step(const StepRecord& step) override {
    timeline_.add(seconds(real_clock().now() - begin_), step);
  }
  Timeline take() { return std::move(timeline_); }

 private:
  const TimePoint begin_ = real_clock().now();
  Timeline timeline_;
};

// A different picture for each arrival and number, and for each run.
std::function<std::string(size_t, int)> pictures(const LiveTrace& setting, size_t run) {
  const ImageLoad image{.count = 1, .width = setting.picture_size, .height = setting.picture_size};
  return [image, run](size_t index, int i) {
    const size_t seed = (run * 1'000'000 + index) * 1000 + static_cast<size_t>(i);
    Result<std::string> url = random_image_url(image, seed);
    if (!url.ok()) throw std::invalid_argument(url.error().message);
    return std::move(url).value();
  };
}

std::unique_ptr<ops::LowRankProducts> products_of(Operators operators) {
  switch (operators) {
    case Operators::kDlora: return dlora_products();
    case Operators::kPunica: return punica_products();
    case Operators::kSlora: return slora_products();
    case Operators::kOurs: break;
  }
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<TraceEngine>> TraceEngine::start(const LiveTrace& setting,
                                                        std::span<const TraceSystem* const> systems,
                                                        const std::vector<LoadAdapter>& adapters) {
  std::unique_ptr<TraceEngine> made(new TraceEngine(setting, systems));
  std::vector<std::unique_ptr<scheduler::Policy>> policies;
  for (const TraceSystem* system : systems) {
    scheduler::PolicyOptions options =
        policy_options(setting.engine.scheduling, setting.experiments);
    options.max_adapters = system->max_adapters;
    VALORA_TRY(policy, make_compared_policy(system->policy, options));
    policies.push_back(std::move(policy));
    made->products_.push_back(products_of(system->operators));
  }
  auto in_turn = std::make_unique<scheduler::PoliciesInTurn>(std::move(policies));
  made->policies_ = in_turn.get();
  VALORA_TRY(changes, changes_of(setting.engine.scheduling, setting.experiments));
  changes.policy = [&in_turn] { return std::move(in_turn); };
  VALORA_TRY(engine, start_engine(setting.engine, real_clock(), changes));
  const bool others =
      std::ranges::any_of(made->products_, [](const auto& p) { return p != nullptr; });
  if (others && engine->model().dtype != "bfloat16")
    return invalid("--policies: the operators of other systems need --dtype bfloat16", "policies");
  for (const LoadAdapter& load : adapters) {
    VALORA_CHECK(load_adapter_sync(*engine, load));
    made->adapters_.push_back(load.name);
  }
  // Other operators convert an adapter when they first see it.
  EngineTarget target(*engine);
  for (const auto& products : made->products_) {
    ops::set_low_rank_products(products.get());
    warm_up(target, made->adapters_);
  }
  ops::set_low_rank_products(nullptr);
  if (setting.fits_costs) engine->set_step_probe(std::ref(made->steps_));
  made->engine_ = std::move(engine);
  return made;
}

LiveOptions TraceEngine::live_options(const TraceSystem& system,
                                      std::function<void(size_t)> progress) const {
  // Without a prefix cache, each request gets its own salt.
  const auto salt = [run = runs_, alone = !system.prefix_caching](size_t index) {
    return alone ? fmt::format("run {}, {}", run, index) : fmt::format("run {}", run);
  };
  return {.picture = pictures(setting_, runs_), .salt = salt, .progress = std::move(progress)};
}

TraceOutcome TraceEngine::run(size_t system, const std::vector<sim::Arrival>& arrivals,
                              std::function<void(size_t)> progress) {
  ++runs_;
  policies_->take(system);
  ops::set_low_rank_products(products_[system].get());
  engine_->forget_merged();
  const EngineStats before = engine_->stats();
  TraceOutcome outcome;
  std::optional<TimelineObserver> observer;
  if (setting_.timeline > 0) {
    observer.emplace(setting_.timeline);
    engine_->set_observer(&*observer);
  }
  LiveReport report =
      run_live(*engine_, arrivals, adapters_, live_options(*systems_[system], std::move(progress)));
  engine_->set_observer(nullptr);
  report.stats.mode_switches -= before.mode_switches;
  report.stats.merges -= before.merges;
  report.stats.merge_seconds -= before.merge_seconds;
  outcome.summary = summary_of(arrivals, report, setting_.ttft_target);
  if (observer) outcome.timeline = observer->take();
  return outcome;
}

Result<scheduler::CostFile> TraceEngine::fitted_costs() const {
  VALORA_TRY(fitted, scheduler::fit_costs(steps_.steps()));
  const serving::CostKey key = engine_->cost_key();
  return scheduler::CostFile{key.machine, key.model, fitted};
}

Result<TraceOutcome> run_on_server(const LiveTrace& setting, const ServerAddress& server,
                                   const std::vector<sim::Arrival>& arrivals, int adapters,
                                   std::function<void(size_t)> progress) {
  HttpClient client(server.url, server.api_key, kServerTimeout);
  VALORA_TRY(models, served_models(client));
  if (models.base.empty())
    return invalid(fmt::format("{}: /v1/models does not list the base model", server.url), "url");
  if (models.adapters.size() < static_cast<size_t>(adapters))
    return invalid(fmt::format("{} has {} adapters, but --adapters asks for {}", server.url,
                               models.adapters.size(), adapters),
                   "adapters");
  models.adapters.resize(static_cast<size_t>(adapters));
  ServerTarget target(server, models.base, kServerTimeout);
  warm_up(target, models.adapters);
  const LiveReport report =
      run_live(target, arrivals, models.adapters,
               {.picture = pictures(setting, 0), .salt = {}, .progress = std::move(progress)});
  return TraceOutcome{summary_of(arrivals, report, setting.ttft_target), {}};
}

}  // namespace valora::bench
