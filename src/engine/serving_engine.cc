#include "engine/serving_engine.h"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <random>

#include "base/fault.h"
#include "base/log.h"
#include "engine/output/task_head.h"
#include "engine/sampling/bad_words.h"
#include "ops/parallel.h"

namespace valora {
namespace {

uint64_t random_seed() {
  static thread_local std::mt19937_64 rng{std::random_device{}()};
  return rng();
}

// While nothing else happens, the engine thread looks after memory this often.
constexpr auto kMemoryPeriod = std::chrono::milliseconds(100);

}  // namespace

ServingEngine::~ServingEngine() {
  stopping_ = true;
  // Workers end first: the engine thread ends the requests that they still hand over.
  adapter_workers_.reset();
  if (prompt_workers_) stop_preparing();
  grammar_workers_.reset();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  core_.reset();  // its mover uses what is destroyed next
}

namespace {

// Heads answer with labels alone.
Status check_constraint(const GenerateRequest& request, const LoadedHead* head,
                        const AnswerForm& form) {
  const AnswerConstraint& constraint = *request.constraint;
  if (head == nullptr && request.task != Task::kClassify)
    return check_shape(constraint, form, request.prompt);
  if (request.task == Task::kClassify || constraint.kind != AnswerConstraint::Kind::kLabels)
    return invalid("a task head answers with a label, whose form cannot be chosen",
                   constraint.param);
  if (head->problem_type == adapters::ProblemType::kRegression)
    return invalid("the task head of this model answers with numbers, not with a label",
                   constraint.param);
  return {};
}

}  // namespace

Status ServingEngine::check_token(int32_t id, const char* field) const {
  const int64_t vocab = loaded_.model->spec().vocab;
  if (id >= 0 && id < vocab) return {};
  return invalid(fmt::format("\"{}\" names token {}, which is out of vocabulary ({} tokens)", field,
                             id, vocab),
                 field);
}

Result<std::shared_ptr<ActiveRequest>> ServingEngine::make_request(
    GenerateRequest request, std::shared_ptr<ResponseSink> sink) {
  auto active = std::make_shared<ActiveRequest>();
  for (const AdapterUse& use : request.adapters) {
    VALORA_TRY(served, adapters_.find(use.name));
    if (!std::isfinite(use.scale))
      return invalid("the scale of adapter " + use.name + " is not finite", "lora");
    active->adapters.push_back({served.adapter, use.scale, served.head, served.form});
  }
  VALORA_TRY(head, choose_head(request, active->adapters));
  active->head = head;
  if (!active->adapters.empty()) active->form = active->adapters.front().form;
  if (request.constraint) VALORA_CHECK(check_constraint(request, head, active->form));
  if (request.sampling.prompt_logprobs && (head || request.task != Task::kGenerate))
    return invalid(
        "\"prompt_logprobs\" needs an answer of the language model; a task head gives "
        "none",
        "prompt_logprobs");
  for (const auto& [id, bias] : request.sampling.logit_bias)
    VALORA_CHECK(check_token(id, "logit_bias"));
  for (const int32_t id : request.sampling.allowed_token_ids)
    VALORA_CHECK(check_token(id, "allowed_token_ids"));
  for (const int32_t id : request.sampling.stop_token_ids)
    VALORA_CHECK(check_token(id, "stop_token_ids"));
  // Takes a bit for each id up to the highest allowed one.
  VALORA_TRY(sampling, settle_sampling(request.sampling, frontend_->generation(),
                                       options_.max_logprobs, random_seed()));
  sampling.bad_words = tokens_of(request.sampling.bad_words, *frontend_->tokenizer());
  active->sampling = std::move(sampling);
  VALORA_CHECK(frontend_->check(request.prompt));
  active->stop_strings = make_stop_strings(std::exchange(request.sampling.stop, {}));
  active->handle = next_handle_++;
  active->request = std::move(request);
  active->sink = std::move(sink);
  active->arrival = clock_.now();
  // Those that name no client take turns with all others.
  const std::string& client = active->request.client;
  active->client =
      client.empty() ? "request " + std::to_string(active->handle) : "client " + client;
  const RequestHandle handle = active->handle;
  active->admission.emplace_back(
      [this, handle](EngineCore& core) { core.admit(accepted(handle)); });
  active->cancellation.emplace_back([handle](EngineCore& core) { core.cancel(handle); });
  return active;
}

Status ServingEngine::accepting() const {
  if (draining_ || stopping_)
    return Error{ErrorCode::kUnavailable, "the server is shutting down", {}};
  if (!healthy_)
    return Error{ErrorCode::kUnavailable, "the engine has stopped after an internal fault", {}};
  if (queued_ < options_.max_waiting) return {};
  return Error{ErrorCode::kQueueFull,
               "the queue is full (" + std::to_string(options_.max_waiting) +
                   " requests wait); try again later",
               {}};
}

Result<RequestHandle> ServingEngine::submit(GenerateRequest request,
                                            std::shared_ptr<ResponseSink> sink) {
  try {
    VALORA_TRY(active, make_request(std::move(request), std::move(sink)));
    VALORA_CHECK(accept(active));
    return active->handle;
  } catch (const std::exception& e) {
    return model_fault("the request could not be accepted", e);
  }
}

Status ServingEngine::accept(const std::shared_ptr<ActiveRequest>& request) {
  {
    // Under one lock, so that no request is accepted during a drain or beyond the limit.
    const std::lock_guard lock(mutex_);
    VALORA_CHECK(accepting());
    requests_.emplace(request->handle, request);
    ++queued_;
    ++preparing_;
  }
  const bool constrained = request->request.constraint && request->head == nullptr;
  request->preparations = constrained ? 2 : 1;
  try {
    // On their way while the prompt is prepared.
    if (auto needs = needs_of(request->adapters); !needs.empty())
      post([needs = std::move(needs)](EngineCore& core) { core.expect(needs); });
    prepare(request);
  } catch (...) {
    take_back(*request);
    throw;
  }
  if (constrained) begin_grammar(request);
  return {};
}

// What accept() did to a request that no worker has.
void ServingEngine::take_back(const ActiveRequest& request) {
  {
    const std::lock_guard lock(mutex_);
    requests_.erase(request.handle);
    --queued_;
    --preparing_;
  }
  wake_.notify_one();  // a drain may wait for it
}

std::shared_ptr<ActiveRequest> ServingEngine::accepted(RequestHandle handle) {
  const std::lock_guard lock(mutex_);
  return requests_.at(handle);
}

Result<std::vector<int32_t>> ServingEngine::tokenize(const Prompt& prompt,
                                                     bool add_special_tokens) const {
  return frontend_->tokenize(prompt, add_special_tokens);
}

Result<std::string> ServingEngine::detokenize(const std::vector<int32_t>& ids) const {
  if (ids.empty()) return std::string();
  VALORA_CHECK(frontend_->check(Prompt(ids)));
  return frontend_->tokenizer()->decode(ids, false);
}

std::vector<AdapterCard> ServingEngine::adapters() const {
  std::vector<AdapterCard> cards = adapters_.cards();
  AdapterStore* store = tiers_->adapters();
  for (AdapterCard& card : cards) card.resident = !store || store->resident(card.digest);
  return cards;
}

EngineStats ServingEngine::stats() const {
  const media::LoaderStats media = frontend_->media_stats();
  const std::lock_guard lock(mutex_);
  EngineStats stats = stats_;
  stats.preparing = preparing_;
  stats.media_queries = media.queries;
  stats.media_hits = media.hits;
  stats.media_bytes = media.bytes;
  stats.media_entries = media.entries;
  return stats;
}

void ServingEngine::set_observer(StepObserver* observer) {
  const std::lock_guard lock(observer_mutex_);
  observer_ = observer;
}

void ServingEngine::set_step_probe(StepProbe probe) {
  const std::lock_guard lock(observer_mutex_);
  probe_ = std::move(probe);
}

CostKey ServingEngine::cost_key() const {
  return valora::cost_key(loaded_.model->spec(), loaded_.dtype, device_);
}

void ServingEngine::drain(std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    drained_.push_back(std::move(done));
  }
  wake_.notify_one();
}

void ServingEngine::request_ended(RequestHandle handle) {
  const std::lock_guard lock(mutex_);
  requests_.erase(handle);
}

void ServingEngine::post(std::function<void(EngineCore&)> command) {
  EngineCommands posted;
  posted.push_back(std::move(command));
  {
    const std::lock_guard lock(mutex_);
    inbox_.splice(inbox_.end(), posted);
  }
  wake_.notify_one();
}

std::string ServingEngine::check() {
  std::promise<std::string> answer;
  post([&](EngineCore& core) { answer.set_value(core.check()); });
  return answer.get_future().get();
}

void ServingEngine::copied() {
  {
    const std::lock_guard lock(mutex_);
    copied_ = true;
  }
  wake_.notify_one();
}

// Under mutex_.
bool ServingEngine::has_work() const {
  if (stop_ || copied_ || !inbox_.empty() || (!drained_.empty() && requests_.empty())) return true;
  return healthy_ && !core_->idle() && !stalled_;
}

// Runs the commands of the inbox; waits if there is no other work. Returns false if the engine must
// stop and the inbox is empty.
bool ServingEngine::run_commands() {
  EngineCommands commands;
  bool stop;
  {
    std::unique_lock lock(mutex_);
    const auto work = [this] { return has_work(); };
    if (options_.shares_cores && !work()) ops::release_threads();
    if (core_->memory_restless() || stalled_)
      wake_.wait_for(lock, kMemoryPeriod, work);
    else
      wake_.wait(lock, work);
    commands.swap(inbox_);
    copied_ = false;
    stop = stop_;
  }
  while (!commands.empty()) {
    const auto command = std::move(commands.front());
    commands.pop_front();
    try {
      command(*core_);
    } catch (const std::bad_alloc&) {  // none that a request's end depends on
      spdlog::error("a command of the engine was lost: out of memory");
    } catch (...) {
      const std::lock_guard lock(mutex_);
      inbox_.splice(inbox_.begin(), commands);
      throw;
    }
  }
  return !stop;
}

void ServingEngine::step() {
  if (core_->idle()) return core_->tend_memory();
  const double merging = core_->merge_seconds();
  const scheduler::StepReport report = core_->step();
  stalled_ = report.waits_for_copies;
  if (report.sequences == 0) return;
  {
    const std::lock_guard lock(mutex_);
    ++stats_.steps;
    stats_.step_seconds += report.seconds;
    stats_.overhead_seconds += report.overhead_seconds;
  }
  const std::lock_guard lock(observer_mutex_);
  if (observer_) {
    observer_->on_step({.tokens = report.tokens,
                        .sequences = report.sequences,
                        .seconds = report.seconds,
                        .mode = scheduler::mode_name(report.shape.mode),
                        .switched = report.shape.switches,
                        .merged = report.shape.merges,
                        .weights_seconds = core_->merge_seconds() - merging});
  }
  if (probe_) probe_(report);
}

// A fault that step() does not handle: the engine runs no more steps, and all requests get the
// error.
void ServingEngine::die(const std::exception& fault) {
  healthy_ = false;
  spdlog::critical("the engine stopped: {}", reason_of(fault));
  core_->fail_all(died_);
}

void ServingEngine::publish() {
  std::vector<std::function<void()>> drained;
  {
    const std::lock_guard lock(mutex_);
    core_->fill(stats_);
    if (requests_.empty()) drained.swap(drained_);
  }
  for (const auto& done : drained) done();
}

void ServingEngine::run() {
  const c10::InferenceMode no_gradients;
  bool running = true;
  while (running) {
    try {
      running = run_commands();
      if (!running)
        core_->fail_all(stopped_);
      else if (healthy_)
        step();
      else
        core_->fail_all(died_);
    } catch (const std::bad_alloc&) {
      // Not of a request: those end in the step loop. Memory's wishes, or an observer's.
      spdlog::error("the engine left something undone: out of memory");
    } catch (const std::exception& e) {
      die(e);
    }
    try {
      publish();
    } catch (const std::exception& e) {
      spdlog::error("the engine's statistics stay as they were: {}", reason_of(e));
    }
  }
}

}  // namespace valora
