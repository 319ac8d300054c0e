#include "engine/serving_engine.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <cmath>
#include <ctime>
#include <random>

#include "adapters/adapter_spec.h"
#include "base/log.h"
#include "engine/memory_plan.h"
#include "engine/task_head.h"

namespace valora {
namespace {

Result<at::Device> parse_device(const std::string& name) {
  if (name == "cpu") return at::Device(at::kCPU);
  if (name != "cuda") return invalid("device \"" + name + "\" is unknown; use cpu or cuda", "device");
  if (!at::globalContext().hasCUDA())
    return unprocessable("--device cuda: this build's torch has no CUDA, or no GPU is there; build with PYTHON= naming a CUDA torch", "device");
  return at::Device(at::kCUDA, 0);
}

uint64_t random_seed() {
  static thread_local std::mt19937_64 rng{std::random_device{}()};
  return rng();
}

}  // namespace

ServingEngine::ServingEngine(const EngineOptions& options)
    : options_(options), adapters_(static_cast<size_t>(std::max(1, options.max_loras))) {}

Result<std::unique_ptr<ServingEngine>> ServingEngine::start(const EngineOptions& options) {
  std::unique_ptr<ServingEngine> engine(new ServingEngine(options));
  VALORA_CHECK(engine->load());
  engine->media_workers_ = std::make_unique<WorkerPool>(std::max(1, options.media_workers));
  engine->adapter_workers_ = std::make_unique<WorkerPool>(1);
  engine->thread_ = std::thread([raw = engine.get()] { raw->run(); });
  return engine;
}

Status ServingEngine::load() {
  VALORA_TRY(device, parse_device(options_.device));
  device_ = device;
  if (options_.threads > 0) at::set_num_threads(options_.threads);
  if (options_.max_num_seqs < 1) return invalid("--max-num-seqs must be at least 1", "max_num_seqs");
  if (options_.max_num_batched_tokens < 1) return invalid("--max-num-batched-tokens must be at least 1", "max_num_batched_tokens");
  if (options_.max_lora_rank < 1 || options_.max_lora_rank > 256) return invalid("--max-lora-rank must be between 1 and 256", "max_lora_rank");
  VALORA_TRY(policy, scheduler::make_policy(options_.policy));
  VALORA_TRY(loaded, models::load_model(options_.model_path, options_.dtype, device_));
  loaded_ = std::move(loaded);
  const models::ModelSpec& spec = loaded_.model->spec();
  for (const std::string& name : loaded_.unused_tensors) spdlog::warn("{}: tensor {} is not used", options_.model_path, name);
  VALORA_TRY(frontend, Frontend::open(options_, *loaded_.family, spec));
  frontend_ = std::move(frontend);

  const int64_t block_bytes = ops::KvArena::block_bytes(spec.layers, memory::kBlockTokens, spec.kv_heads, spec.head_dim, loaded_.dtype);
  VALORA_TRY(plan, plan_memory(options_, spec, block_bytes, available_host_memory()));
  notes_ = plan.notes;
  auto runner = std::make_unique<Runner>(
      *loaded_.model,
      ops::KvArena(plan.kv_blocks, spec.layers, memory::kBlockTokens, spec.kv_heads, spec.head_dim, loaded_.dtype, device_),
      loaded_.dtype, device_, options_.visual_cache_bytes);
  const CoreConfig config{{options_.max_num_seqs, options_.max_num_batched_tokens, std::max(4096, 4 * options_.max_waiting)},
                          plan.max_model_len, plan.kv_blocks, options_.prefix_caching};
  core_ = std::make_unique<EngineCore>(config, std::move(policy), std::move(runner), *frontend_, clock_,
                                       CoreEvents{[this] { --queued_; }, [this] { request_ended(); }});

  card_.name = options_.served_name.empty() ? options_.model_path : options_.served_name;
  card_.path = options_.model_path;
  card_.architecture = spec.architecture;
  card_.dtype = loaded_.dtype == at::kFloat ? "float32" : loaded_.dtype == at::kBFloat16 ? "bfloat16" : "float16";
  card_.device = options_.device;
  card_.parameters = loaded_.parameters;
  card_.max_model_len = plan.max_model_len;
  card_.created = std::time(nullptr);
  card_.images = spec.image_token.has_value();
  card_.videos = spec.video_token.has_value();
  card_.kv_block_tokens = memory::kBlockTokens;
  card_.kv_blocks = plan.kv_blocks;
  card_.kv_bytes = static_cast<size_t>(block_bytes) * plan.kv_blocks;
  card_.weight_bytes = static_cast<size_t>(loaded_.parameters) * c10::elementSize(loaded_.dtype);
  return {};
}

ServingEngine::~ServingEngine() {
  draining_ = true;
  adapter_workers_.reset();
  media_workers_.reset();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const auto& [handle, request] : preparing_)
    if (!request->cancelled) request->sink->on_error({ErrorCode::kCancelled, "the server was stopped", {}});
}

Result<std::shared_ptr<ActiveRequest>> ServingEngine::make_request(GenerateRequest request, std::shared_ptr<ResponseSink> sink) {
  auto active = std::make_shared<ActiveRequest>();
  for (const AdapterUse& use : request.adapters) {
    VALORA_TRY(adapter, adapters_.find(use.name));
    if (!std::isfinite(use.scale)) return invalid("the scale of adapter " + use.name + " is not finite", "lora");
    active->adapters.push_back({adapter, use.scale});
  }
  VALORA_TRY(head, choose_head(request, active->adapters));
  active->head = head;
  VALORA_TRY(sampling, settle_sampling(request.sampling, frontend_->generation(), options_.max_logprobs, random_seed()));
  active->sampling = std::move(sampling);
  VALORA_CHECK(frontend_->check(request.prompt));
  active->handle = next_handle_++;
  active->request = std::move(request);
  active->sink = std::move(sink);
  active->arrival = clock_.now();
  return active;
}

Result<RequestHandle> ServingEngine::submit(GenerateRequest request, std::shared_ptr<ResponseSink> sink) {
  if (draining_) return Error{ErrorCode::kUnavailable, "the server is shutting down", {}};
  if (!healthy_) return Error{ErrorCode::kUnavailable, "the engine has stopped after an internal fault", {}};
  VALORA_TRY(active, make_request(std::move(request), std::move(sink)));
  if (queued_.fetch_add(1) >= options_.max_waiting) {
    --queued_;
    return Error{ErrorCode::kQueueFull, "the queue is full (" + std::to_string(options_.max_waiting) + " requests wait); try again later", {}};
  }
  ++in_flight_;
  {
    const std::lock_guard lock(mutex_);
    preparing_[active->handle] = active;
  }
  media_workers_->post([this, active] { prepare(active); });
  return active->handle;
}

void ServingEngine::prepare(const std::shared_ptr<ActiveRequest>& request) {
  Result<PreparedPrompt> prompt = PreparedPrompt{};
  if (!request->cancelled) {
    try {
      prompt = frontend_->prepare(request->request.prompt, request->head && request->request.task == Task::kClassify
                                                               ? request->head->add_generation_prompt
                                                               : true,
                                  request->adapters);
    } catch (const std::exception& e) {
      prompt = internal(std::string("the prompt could not be prepared: ") + e.what());
    }
  }
  request->request.prompt = std::string();  // media URLs may hold megabytes
  {
    // In one piece, so that cancel() finds the request on one side or the other.
    const std::lock_guard lock(mutex_);
    preparing_.erase(request->handle);
    inbox_.push_back([request, prompt = std::make_shared<Result<PreparedPrompt>>(std::move(prompt))](EngineCore& core) {
      core.admit(request, std::move(*prompt));
    });
  }
  wake_.notify_one();
}

void ServingEngine::cancel(RequestHandle handle) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = preparing_.find(handle); it != preparing_.end()) it->second->cancelled = true;
  }
  post([handle](EngineCore& core) { core.cancel(handle); });
}

Result<AdapterCard> ServingEngine::load_now(const LoadAdapter& request) {
  VALORA_CHECK(adapters_.check(request));
  const adapters::ModuleTable& modules = loaded_.model->spec().modules;
  VALORA_TRY(spec, adapters::read_adapter(request.path, modules, {options_.max_lora_rank}));
  for (const std::string& warning : spec.warnings) spdlog::warn("adapter {}: {}", request.name, warning);
  auto shared = std::make_shared<const adapters::AdapterSpec>(std::move(spec));
  auto built = build_adapter(*shared, modules.modules().size(), loaded_.dtype, device_);
  return adapters_.add(request, shared, built);
}

void ServingEngine::load_adapter(LoadAdapter request, std::function<void(Result<AdapterCard>)> done) {
  adapter_workers_->post([this, request = std::move(request), done = std::move(done)] {
    try {
      done(load_now(request));
    } catch (const std::exception& e) {
      done(internal("loading adapter " + request.name + " failed: " + e.what()));
    }
  });
}

void ServingEngine::unload_adapter(std::string name, std::optional<uint64_t> expected_generation, std::function<void(Status)> done) {
  // In the same line as loads, so that an unload after a load finds it.
  adapter_workers_->post([this, name = std::move(name), expected_generation, done = std::move(done)] {
    auto removed = adapters_.remove(name, expected_generation);
    if (!removed.ok()) return done(removed.error());
    const AppliedAdapter use{*removed, 1};
    post([identity = identity_of({&use, 1})](EngineCore& core) { core.forget_adapter(identity); });
    done({});
  });
}

Result<std::vector<int32_t>> ServingEngine::tokenize(const Prompt& prompt, bool add_special_tokens) const {
  return frontend_->tokenize(prompt, add_special_tokens);
}

Result<std::string> ServingEngine::detokenize(const std::vector<int32_t>& ids) const {
  VALORA_CHECK(frontend_->check(Prompt(ids)));
  return frontend_->tokenizer()->decode(ids, false);
}

EngineStats ServingEngine::stats() const {
  const media::LoaderStats media = frontend_->media_stats();
  const std::lock_guard lock(mutex_);
  EngineStats stats = stats_;
  stats.preparing = static_cast<int>(preparing_.size());
  stats.media_queries = media.queries;
  stats.media_hits = media.hits;
  return stats;
}

void ServingEngine::drain(std::function<void()> done) {
  draining_ = true;
  {
    const std::lock_guard lock(mutex_);
    drained_.push_back(std::move(done));
  }
  post([](EngineCore&) {});
}

void ServingEngine::request_ended() { --in_flight_; }

void ServingEngine::post(std::function<void(EngineCore&)> command) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(command));
  }
  wake_.notify_one();
}

// Takes what has come in; waits for it where there is nothing else to do. False: time to stop.
bool ServingEngine::run_commands() {
  std::deque<std::function<void(EngineCore&)>> commands;
  {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stop_ || !inbox_.empty() || !core_->idle(); });
    commands.swap(inbox_);
  }
  for (const auto& command : commands) command(*core_);
  return !stop_;
}

void ServingEngine::publish() {
  std::vector<std::function<void()>> drained;
  {
    const std::lock_guard lock(mutex_);
    core_->fill(stats_);
    if (in_flight_ == 0 && draining_) drained.swap(drained_);
  }
  for (const auto& done : drained) done();
}

void ServingEngine::run() {
  const c10::InferenceMode no_gradients;
  try {
    while (run_commands()) {
      const EngineCore::StepReport report = core_->step();
      if (report.sequences > 0) {
        const std::lock_guard lock(mutex_);
        ++stats_.steps;
        stats_.step_seconds += report.seconds;
        stats_.overhead_seconds += report.overhead_seconds;
      }
      publish();
      if (StepObserver* observer = observer_.load(); observer && report.sequences > 0)
        observer->on_step(report.tokens, report.sequences, report.seconds);
    }
    core_->fail_all({ErrorCode::kCancelled, "the server was stopped", {}});
  } catch (const std::exception& e) {
    healthy_ = false;
    spdlog::critical("the engine stopped: {}", e.what());
    core_->fail_all(internal(std::string("the engine stopped: ") + e.what()));
  }
}

}  // namespace valora
