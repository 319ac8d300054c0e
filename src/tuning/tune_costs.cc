#include "tuning/tune_costs.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <latch>
#include <mutex>
#include <random>

#include "api/waiting_calls.h"
#include "engine/start/start_engine.h"
#include "generator/train/peft_writer.h"
#include "models/registry.h"
#include "scheduler/policies/policies_in_turn.h"
#include "tuning/scene_recorder.h"

namespace valora::tuning {
namespace {

namespace fs = std::filesystem;

struct RandomAdapter {
  std::string name;
  int rank = 0;
};

constexpr int kLowRank = 8, kHighRank = 64;
constexpr int kLowRanked = 8, kHighRanked = 2;
constexpr int kAnswer = 16;             // tokens per answer
constexpr int kReferenceAnswer = 6;     // for the reference before each scene
constexpr int kMostPromptTokens = 800;  // total over the requests of a scene
constexpr int kMostApart = 4;           // requests of different adapters in a merged scene

// Each mode is represented by a policy that uses no other, in the order of the report. One engine
// runs them in turn, so that a slow phase of the machine does not hit a single mode.
constexpr std::array kTunedModes = {"unmerged", "merged", "mixture"};
constexpr size_t kMerged = 1;

Result<std::unique_ptr<scheduler::PoliciesInTurn>> policies_of_modes() {
  std::vector<std::unique_ptr<scheduler::Policy>> policies;
  for (const char* mode : kTunedModes) {
    VALORA_TRY(policy, scheduler::make_policy(mode));
    policies.push_back(std::move(policy));
  }
  return std::make_unique<scheduler::PoliciesInTurn>(std::move(policies));
}

// A temporary folder, removed by the destructor.
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

// Writes adapters on all the decoder's linears.
Result<std::vector<RandomAdapter>> write_adapters(const EngineOptions& options,
                                                  const std::string& folder) {
  VALORA_TRY(config, models::read_model_config({options.model_path, options.mmproj}));
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

// A request of one adapter, or none.
struct SceneRequest {
  std::vector<int32_t> prompt;
  scheduler::AdapterId adapter = scheduler::kBaseModel;
};

struct Scene {
  size_t mode = 0;  // index into kTunedModes
  std::vector<SceneRequest> requests;
};

// Batches of requests that arrive together: one size at a time, with each assignment and mode in
// turn, so that a slow phase of the machine does not hit a single assignment or mode.
std::vector<Scene> make_scenes(std::mt19937& random, int most_tokens) {
  const auto pick = [&](auto& values) { return values[random() % std::size(values)]; };
  constexpr int kRequests[] = {1, 2, 4, 8, 16, 32}, kPrompts[] = {16, 64, 200, 400, 800};
  const int requests = pick(kRequests);
  const int prompt =
      std::clamp(std::min(pick(kPrompts), most_tokens - kAnswer), 1, kMostPromptTokens / requests);
  std::vector<Assignment> assignments(std::begin(kAssignments), std::end(kAssignments));
  std::ranges::shuffle(assignments, random);
  std::vector<Scene> scenes;
  for (const Assignment assignment : assignments) {
    std::vector<SceneRequest> batch;
    for (int i = 0; i < requests; ++i) {
      SceneRequest request{.prompt = {}, .adapter = adapter_of(assignment, i)};
      for (int t = 0; t < prompt; ++t)
        request.prompt.push_back(static_cast<int32_t>(random() % 256));
      batch.push_back(std::move(request));
    }
    for (size_t mode = 0; mode < kTunedModes.size(); ++mode) {
      // In merged mode, requests of different adapters run one adapter at a time, which only
      // repeats small batches and takes long.
      const bool apart =
          mode == kMerged && assignment == Assignment::kEach && requests > kMostApart;
      if (!apart) scenes.push_back({mode, batch});
    }
  }
  return scenes;
}

// The ends of a batch's answers.
class BatchEnd final : public ResponseSink {
 public:
  explicit BatchEnd(size_t answers) : running_(static_cast<ptrdiff_t>(answers)) {}

  void on_output(OutputChunk) override {}
  void on_done(const FinalInfo&) override { running_.count_down(); }
  void on_error(const Error& error) override {
    {
      const std::lock_guard lock(mutex_);
      if (status_.ok()) status_ = error;
    }
    running_.count_down();
  }
  // Waits for all answers. The first error, if there was one.
  Status wait() {
    running_.wait();
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  std::latch running_;
  std::mutex mutex_;
  Status status_;
};

// Sends the requests at once, and waits for all answers of so many tokens. adapters: names, by
// AdapterId.
Status run_batch(serving::LocalEngine& engine, const std::vector<SceneRequest>& requests,
                 const std::vector<std::string>& adapters, int answer_tokens) {
  const auto end = std::make_shared<BatchEnd>(requests.size());
  for (const SceneRequest& each : requests) {
    GenerateRequest request;
    request.prompt = each.prompt;
    if (each.adapter != scheduler::kBaseModel)
      request.adapters = {{adapters[static_cast<size_t>(each.adapter)], 1}};
    request.sampling.max_tokens = answer_tokens;
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    const auto handle = engine.submit(std::move(request), end);
    if (!handle.ok()) end->on_error(handle.error());
  }
  return end->wait();
}

Status run_reference(serving::LocalEngine& engine) {
  return run_batch(engine, {{.prompt = std::vector<int32_t>(16, 1)}}, {}, kReferenceAnswer);
}

// Runs scenes for the given time, and at least one of each assignment and mode.
Status run_scenes(serving::LocalEngine& engine, const CostTuning& tuning,
                  const std::vector<std::string>& adapters, SceneRecorder& recorder,
                  const std::function<void(double, const std::string&)>& progress) {
  std::mt19937 random(tuning.seed);
  const TimePoint start = real_clock().now();
  double passed = 0;
  const auto reference = [&] {
    (void)engine.check();  // waits until the previous scene's last step is reported
    recorder.begin_reference();
    return run_reference(engine);
  };
  for (bool first = true; first || passed < tuning.seconds; first = false)
    for (const Scene& scene : make_scenes(random, engine.model().max_model_len)) {
      if (!first && passed >= tuning.seconds) break;
      VALORA_CHECK(reference());
      (void)engine.check();
      recorder.begin_scene(scene.mode);
      VALORA_CHECK(run_batch(engine, scene.requests, adapters, kAnswer));
      passed = seconds(real_clock().now() - start);
      progress(std::min(passed, tuning.seconds), kTunedModes[scene.mode]);
    }
  return reference();
}

}  // namespace

Result<TunedCosts> tune_costs(const CostTuning& tuning,
                              const std::function<void(double, const std::string&)>& progress) {
  const ScratchFolder scratch;
  if (scratch.path().empty()) return invalid("cannot create a temporary folder for adapters");
  progress(0, "writing adapters");
  VALORA_TRY(adapters, write_adapters(tuning.engine, scratch.path()));
  EngineOptions options = tuning.engine;
  options.prefix_caching = false;
  VALORA_TRY(policies, policies_of_modes());
  scheduler::PoliciesInTurn& modes = *policies;
  EngineChanges changes;
  changes.policy = [&policies] { return std::move(policies); };
  VALORA_TRY(engine, start_engine(options, real_clock(), changes));
  std::vector<std::string> names;
  for (const RandomAdapter& adapter : adapters) {
    LoadAdapter load{.name = adapter.name, .path = scratch.path() + "/" + adapter.name};
    VALORA_CHECK(load_adapter_sync(*engine, std::move(load)));
    names.push_back(adapter.name);
  }
  SceneRecorder recorder(modes);
  engine->set_step_probe(std::ref(recorder.collector()));
  Status ran = run_scenes(*engine, tuning, names, recorder, progress);
  engine->set_step_probe({});
  VALORA_CHECK(std::move(ran));
  const serving::CostKey key = engine->cost_key();
  const RecordedScenes scenes = recorder.recorded(kTunedModes.size());
  VALORA_TRY(fitted, scheduler::fit_costs(scenes.steps));
  TunedCosts tuned;
  tuned.file.machine = key.machine;
  tuned.file.model = key.model;
  tuned.file.fitted = fitted;
  tuned.steps = static_cast<int>(scenes.steps.size());
  tuned.corrected = scheduler::with_corrected_errors(fitted.costs, scenes.steps);
  for (size_t i = 0; i < kTunedModes.size(); ++i)
    tuned.modes.emplace_back(kTunedModes[i],
                             scheduler::with_errors(fitted.costs, scenes.by_mode.at(i)));
  return tuned;
}

}  // namespace valora::tuning
