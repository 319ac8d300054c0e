#include "cli/tune_costs.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <random>

#include "api/waiting_calls.h"
#include "bench/live/live_run.h"
#include "engine/serving_engine.h"
#include "generator/train/peft_writer.h"
#include "models/registry.h"

namespace valora::cli {
namespace {

namespace fs = std::filesystem;

struct RandomAdapter {
  std::string name;
  int rank = 0;
};

constexpr int kLowRank = 8, kHighRank = 32;
constexpr int kLowRanked = 8, kHighRanked = 2;
constexpr int kAnswer = 16;             // tokens per answer
constexpr int kMostPromptTokens = 800;  // of all requests of a scene
constexpr int kWarmUp = 6;              // steps of each engine that do not count

// A folder that is removed at the end.
class ScratchFolder {
 public:
  ScratchFolder() : path_((fs::temp_directory_path() / "valora-costs-XXXXXX").string()) {
    if (!::mkdtemp(path_.data())) path_.clear();
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Adapters of all the decoder's linears.
Result<std::vector<RandomAdapter>> write_adapters(const EngineOptions& options,
                                                  const std::string& folder) {
  VALORA_TRY(config, models::read_model_config(options.model_path));
  VALORA_TRY(family, models::find_family(config));
  VALORA_TRY(spec, models::read_model_spec(*family, config));
  VALORA_TRY(modules, generator::target_modules(spec.modules, {generator::TargetPart::kDecoder}));
  std::vector<RandomAdapter> adapters;
  for (int i = 0; i < kLowRanked + kHighRanked; ++i) {
    const int rank = i < kLowRanked ? kLowRank : kHighRank;
    const generator::AdapterParameters parameters(
        {.rank = rank, .alpha = 2.0 * rank, .modules = modules, .heads = {}}, spec.modules,
        at::kFloat, at::kCPU, static_cast<uint64_t>(i) + 1);
    adapters.push_back({"tuned-" + std::to_string(i), rank});
    VALORA_CHECK(generator::write_adapter(folder + "/" + adapters.back().name, parameters,
                                          spec.modules, {.bfloat16 = true}));
  }
  return adapters;
}

// How the requests of a batch use adapters.
enum class Assignment : uint8_t { kBase, kOneLow, kOneHigh, kEach, kHalf };
constexpr Assignment kAssignments[] = {Assignment::kBase, Assignment::kOneLow, Assignment::kOneHigh,
                                       Assignment::kEach, Assignment::kHalf};

scheduler::AdapterId adapter_of(Assignment assignment, int request) {
  switch (assignment) {
    case Assignment::kBase: break;
    case Assignment::kOneLow: return 0;
    case Assignment::kOneHigh: return kLowRanked;
    case Assignment::kEach: return request % (kLowRanked + kHighRanked);
    case Assignment::kHalf:
      if (request % 2 == 0) return request % 4 == 0 ? 0 : kLowRanked + 1;
  }
  return scheduler::kBaseModel;
}

// Batches of requests that come together: one size, with each assignment in turn, so that a slow
// moment of the machine is not one assignment's.
std::vector<std::vector<sim::Arrival>> make_scenes(std::mt19937& random, int most_tokens) {
  const auto pick = [&](auto& values) { return values[random() % std::size(values)]; };
  constexpr int kRequests[] = {1, 2, 4, 8, 16, 32}, kPrompts[] = {16, 64, 200, 400, 800};
  const int requests = pick(kRequests);
  const int prompt =
      std::clamp(std::min(pick(kPrompts), most_tokens - kAnswer), 1, kMostPromptTokens / requests);
  std::vector<Assignment> assignments(std::begin(kAssignments), std::end(kAssignments));
  std::ranges::shuffle(assignments, random);
  std::vector<std::vector<sim::Arrival>> scenes;
  for (const Assignment assignment : assignments) {
    std::vector<sim::Arrival>& scene = scenes.emplace_back();
    for (int i = 0; i < requests; ++i) {
      sim::Arrival arrival{.answer_tokens = kAnswer, .adapter = adapter_of(assignment, i)};
      for (int t = 0; t < prompt; ++t)
        arrival.prompt.push_back(static_cast<int32_t>(random() % 256));
      scene.push_back(std::move(arrival));
    }
  }
  return scenes;
}

class StepCollector {
 public:
  void operator()(const scheduler::StepReport& report) {
    if (report.run_seconds <= 0 || ++seen_ <= kWarmUp) return;
    const std::lock_guard lock(mutex_);
    steps_.push_back({report.shape, report.run_seconds});
  }
  std::vector<scheduler::MeasuredStep> take() {
    const std::lock_guard lock(mutex_);
    return std::move(steps_);
  }

 private:
  std::mutex mutex_;
  std::vector<scheduler::MeasuredStep> steps_;
  int seen_ = 0;
};

struct Measured {
  std::vector<scheduler::MeasuredStep> steps;
  CostKey key;
};

Result<Measured> measure(EngineOptions options, const std::vector<RandomAdapter>& adapters,
                         const std::string& folder, double seconds, uint32_t seed,
                         const std::function<void(double)>& progress) {
  options.prefix_caching = false;
  VALORA_TRY(engine, ServingEngine::start(options));
  std::vector<std::string> names;
  for (const RandomAdapter& adapter : adapters) {
    LoadAdapter load{.name = adapter.name, .path = folder + "/" + adapter.name};
    VALORA_CHECK(load_adapter_now(*engine, std::move(load)));
    names.push_back(adapter.name);
  }
  StepCollector collector;
  engine->set_step_probe(std::ref(collector));
  std::mt19937 random(seed);
  const TimePoint begin = real_clock().now();
  double passed = 0;
  while (passed < seconds) {
    for (const std::vector<sim::Arrival>& scene :
         make_scenes(random, engine->model().max_model_len)) {
      const bench::LiveReport report = bench::run_live(*engine, scene, names);
      for (const bench::LiveAnswer& answer : report.answers)
        if (answer.error) return *answer.error;
    }
    passed = valora::seconds(real_clock().now() - begin);
    progress(std::min(passed, seconds));
  }
  engine->set_step_probe({});
  return Measured{collector.take(), engine->cost_key()};
}

}  // namespace

Result<TunedCosts> tune_costs(const CostTuning& tuning,
                              const std::function<void(double, const std::string&)>& progress) {
  const ScratchFolder scratch;
  if (scratch.path().empty()) return invalid("no temporary folder can be made for adapters");
  progress(0, "writing adapters");
  VALORA_TRY(adapters, write_adapters(tuning.engine, scratch.path()));
  struct Part {
    SchedulingPolicy policy;
    double share;
  };
  constexpr Part kParts[] = {{SchedulingPolicy::kUnmerged, 0.5},
                             {SchedulingPolicy::kMerged, 0.25},
                             {SchedulingPolicy::kMixture, 0.25}};
  TunedCosts tuned;
  std::vector<scheduler::MeasuredStep> all;
  std::vector<std::vector<scheduler::MeasuredStep>> parts;
  double done = 0;
  for (const Part& part : kParts) {
    EngineOptions options = tuning.engine;
    options.scheduling.policy = part.policy;
    const std::string name = name_of(part.policy);
    VALORA_TRY(measured,
               measure(options, adapters, scratch.path(), part.share * tuning.seconds, tuning.seed,
                       [&](double passed) { progress(done + passed, name); }));
    done += part.share * tuning.seconds;
    tuned.file.machine = measured.key.machine;
    tuned.file.model = measured.key.model;
    all.insert(all.end(), measured.steps.begin(), measured.steps.end());
    parts.push_back(std::move(measured.steps));
  }
  VALORA_TRY(fitted, scheduler::fit_costs(all));
  tuned.file.fitted = fitted;
  tuned.steps = static_cast<int>(all.size());
  for (size_t i = 0; i < parts.size(); ++i)
    tuned.modes.emplace_back(name_of(kParts[i].policy),
                             scheduler::with_errors(fitted.costs, parts[i]));
  return tuned;
}

}  // namespace valora::cli
