#include "engine/core.h"

#include <algorithm>

#include "base/log.h"
#include "engine/output/task_head.h"

namespace valora {
namespace {

using scheduler::StepItem;
using scheduler::StepOutput;
using scheduler::StepPlan;

ActiveRequest& owner_of(const StepItem& item) {
  return *static_cast<Sequence&>(*item.request).owner;
}

TokenLogprob describe(const text::Tokenizer& tokenizer, int32_t id, float logprob) {
  return {id, tokenizer.token_bytes(id), logprob};
}

TokenOutput describe(const text::Tokenizer& tokenizer, const SampledToken& token) {
  TokenOutput output{describe(tokenizer, token.id, token.logprob), {}};
  for (const RankedToken& other : token.top)
    output.top.push_back(describe(tokenizer, other.id, other.logprob));
  return output;
}

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

RequestTimings timings_of(const ActiveRequest& request, TimePoint now) {
  const auto since = [](TimePoint from, TimePoint to) { return std::max(0.0, seconds(to - from)); };
  RequestTimings t;
  t.queue_seconds = since(request.arrival, request.first_scheduled);
  t.adapter_seconds = seconds(request.adapter_wait);
  t.kv_seconds = seconds(request.kv_wait);
  t.prefill_seconds = since(request.first_scheduled, request.first_token);
  t.decode_seconds = since(request.first_token, now);
  t.ttft_seconds = since(request.arrival, request.first_token);
  t.e2e_seconds = since(request.arrival, now);
  return t;
}

// Sorted and distinct.
std::vector<std::string> adapter_names(
    std::span<const std::shared_ptr<scheduler::Request>> requests) {
  std::vector<const LoadedAdapter*> adapters;
  for (const auto& request : requests)
    for (const AppliedAdapter& use : static_cast<const Sequence&>(*request).owner->adapters)
      adapters.push_back(use.adapter.get());
  const auto distinct = [](auto& list) {
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  std::sort(adapters.begin(), adapters.end());
  distinct(adapters);
  std::vector<std::string> names;
  for (const LoadedAdapter* adapter : adapters) names.push_back(adapter->name);
  std::sort(names.begin(), names.end());
  distinct(names);  // a replaced adapter may still run beside its successor of the same name
  return names;
}

}  // namespace

EngineCore::EngineCore(CoreConfig config, std::unique_ptr<scheduler::Policy> policy,
                       std::unique_ptr<Runner> runner, std::unique_ptr<memory::Mover> mover,
                       memory::PoolListener& listener, const Frontend& frontend, const Clock& clock,
                       CoreEvents events)
    : config_(config),
      frontend_(frontend),
      clock_(clock),
      events_(std::move(events)),
      mover_(std::move(mover)),
      pool_(config.pool, *mover_, clock, &listener),
      scheduler_(config.scheduler, pool_, std::move(policy), clock),
      runner_(std::move(runner)),
      loop_(scheduler_, *runner_, *this, clock) {}

void EngineCore::admit(std::shared_ptr<ActiveRequest> request, Result<PreparedPrompt> prompt) {
  active_[request->handle] = request;
  if (request->cancelled) return cancel(request->handle);
  if (!prompt.ok()) return fail(*request, prompt.error());
  try {
    const Status status =
        enqueue(request, std::make_shared<const PreparedPrompt>(std::move(prompt).value()));
    if (!status.ok()) fail(*request, status.error());
  } catch (const std::exception& e) {
    fail(*request, internal(std::string("the request could not be admitted: ") + e.what()));
  }
}

// The most tokens of a sequence: those of the model, or fewer if its adapters leave less room.
Result<int> EngineCore::room_for(const PreparedPrompt& prompt) const {
  const int64_t tokens = pool_.max_tokens(prompt.identity.adapters);
  if (tokens > 0) return static_cast<int>(std::min<int64_t>(config_.max_model_len, tokens));
  int64_t blocks = 0;
  for (const memory::AdapterNeed& need : prompt.identity.adapters) blocks += need.blocks;
  return unprocessable("the adapters of the request need " +
                           std::to_string(blocks * config_.pool.block_bytes) +
                           " bytes, which do not fit into the pool of " +
                           std::to_string(pool_.total_blocks() * config_.pool.block_bytes) +
                           " bytes together; raise --pool-memory",
                       "model");
}

void EngineCore::expect(std::span<const memory::AdapterNeed> needs) {
  for (const memory::AdapterNeed& need : needs) pool_.expect(need);
}

Result<bool> EngineCore::pin(const memory::AdapterNeed& need) {
  const memory::AdapterNode* node = pool_.tree().find_adapter(need.digest);
  const bool before = node && node->kept;
  VALORA_CHECK(pool_.keep(need, true));
  return !before;
}

Status EngineCore::enqueue(const std::shared_ptr<ActiveRequest>& request,
                           std::shared_ptr<const PreparedPrompt> prompt) {
  const int length = static_cast<int>(prompt->tokens.size());
  VALORA_TRY(most, room_for(*prompt));
  const int room = most - length;
  const auto& sampling = request->request.sampling;
  const int needed = request->head ? 0 : sampling.max_tokens.value_or(1);
  if (room < needed)
    return invalid("This model's maximum context length is " + std::to_string(most) +
                       " tokens. However, you requested " + std::to_string(length + needed) +
                       " tokens (" + std::to_string(length) + " in the prompt, " +
                       std::to_string(needed) +
                       " in the completion). Please reduce the length of the prompt or completion.",
                   "messages");
  request->usage.prompt_tokens = length;
  const int sequences = request->head ? 1 : sampling.n;
  for (int i = 0; i < sequences; ++i) {
    auto sequence = std::make_shared<Sequence>(request, i, prompt, frontend_.tokenizer(),
                                               sampling.max_tokens.value_or(room));
    sequence->id = next_sequence_++;
    sequence->ending_tokens = sampling.stop_token_ids;
    if (!sampling.ignore_eos)
      sequence->ending_tokens.insert(sequence->ending_tokens.end(),
                                     frontend_.generation().eos_token_ids.begin(),
                                     frontend_.generation().eos_token_ids.end());
    request->sequences.push_back(sequence);
    ++request->open_sequences;
    queues_changed_ = true;
    VALORA_CHECK(scheduler_.add(sequence));
  }
  return {};
}

// Ends a request and releases what it holds.
void EngineCore::release(ActiveRequest& request) {
  const auto keep = active_.at(request.handle);
  request.ended = true;
  queues_changed_ = true;
  for (const auto& sequence : request.sequences) scheduler_.finish(*sequence);
  request.sequences.clear();  // request and sequences own each other
  active_.erase(request.handle);
  if (!request.started) events_.started();
  events_.ended(request.handle);
}

void EngineCore::cancel(RequestHandle handle) {
  const auto it = active_.find(handle);
  if (it == active_.end()) return;
  const auto request = it->second;
  release(*request);
}

void EngineCore::fail(ActiveRequest& request, const Error& error) {
  if (request.ended) return;
  const auto keep = active_.at(request.handle);
  release(request);
  if (!request.cancelled) request.sink->on_error(error);
}

void EngineCore::fail_all(const Error& error) {
  while (!active_.empty()) fail(*active_.begin()->second, error);
}

void EngineCore::on_planned(const StepPlan& plan) {
  for (const StepItem& item : plan.items) {
    ActiveRequest& request = owner_of(item);
    if (request.started) continue;
    request.started = true;
    queues_changed_ = true;
    request.first_scheduled = item.request->first_scheduled;
    request.adapter_wait = item.request->adapter_wait;
    request.kv_wait = item.request->kv_wait;
    request.usage.cached_tokens = item.request->cached_tokens;
    events_.started();
    if (!request.cancelled) request.sink->on_start(request.usage);
  }
}

void EngineCore::on_failed(scheduler::Request& request, const Error& error) {
  fail(*static_cast<Sequence&>(request).owner, error);
}

void EngineCore::on_output(StepOutput& output) {
  auto& sequence = static_cast<Sequence&>(*output.request);
  ActiveRequest& request = *sequence.owner;
  if (request.cancelled) return;
  if (request.first_token == TimePoint{}) request.first_token = clock_.now();
  if (request.head)
    handle_classification(sequence,
                          classification_of(*request.head, std::move(output.label_logits)));
  else
    handle_token(sequence, output.token);
}

void EngineCore::handle_token(Sequence& sequence, const SampledToken& token) {
  ActiveRequest& request = *sequence.owner;
  const SamplingParams& params = request.request.sampling;
  sequence.tokens.push_back(token.id);
  ++request.usage.completion_tokens;
  const int generated = sequence.generated_tokens();
  const bool scan = generated >= params.min_tokens;

  OutputChunk chunk;
  chunk.index = sequence.index;
  chunk.tokens.push_back(describe(*frontend_.tokenizer(), token));
  const bool asked = contains(params.stop_token_ids, token.id);
  if (contains(sequence.ending_tokens, token.id)) {
    chunk.finish = Finish{FinishReason::kStop, {}};
    if (asked) chunk.finish->stop_reason = token.id;
  } else {
    OutputText::Piece piece = sequence.output.push(token.id, scan);
    chunk.text = std::move(piece.text);
    if (piece.stop)
      chunk.finish = Finish{FinishReason::kStop, *piece.stop};
    else if (generated >= sequence.max_tokens ||
             static_cast<int>(sequence.tokens.size()) >= config_.max_model_len)
      chunk.finish = Finish{FinishReason::kLength, {}};
  }
  if (chunk.finish && !std::holds_alternative<std::string>(chunk.finish->stop_reason)) {
    OutputText::Piece rest = sequence.output.finish(scan);
    chunk.text += rest.text;
    if (rest.stop) chunk.finish = Finish{FinishReason::kStop, *rest.stop};
  }
  const bool last = chunk.finish.has_value();
  request.sink->on_output(std::move(chunk));
  if (last) end_sequence(sequence);
}

void EngineCore::handle_classification(Sequence& sequence, Classification result) {
  ActiveRequest& request = *sequence.owner;
  if (request.request.task == Task::kGenerate) {
    // The label does not depend on sampling: all n choices get the same one.
    const std::string label = label_text(*request.head, result);
    request.sink->on_classification(std::move(result));
    for (int i = 0; i < request.request.sampling.n; ++i)
      request.sink->on_output({i, label, {}, Finish{FinishReason::kStop, {}}});
  } else {
    request.sink->on_classification(std::move(result));
  }
  end_sequence(sequence);
}

void EngineCore::end_sequence(Sequence& sequence) {
  ActiveRequest& request = *sequence.owner;
  request.preemptions += sequence.preemptions;
  queues_changed_ = true;
  scheduler_.finish(sequence);
  if (--request.open_sequences > 0) return;
  const auto keep = active_.at(request.handle);
  FinalInfo info{request.usage, timings_of(request, clock_.now()), request.preemptions,
                 sequence.prompt->tokens};
  release(request);
  request.sink->on_done(info);
}

void EngineCore::fill_memory(EngineStats& stats) const {
  const memory::PoolStats pool = pool_.stats();
  stats.kv_usage = pool_.usage();
  stats.prefix_queries = pool.queried_tokens;
  stats.prefix_hits = pool.hit_tokens;
  const auto moves = [](const memory::MoveTotals& t) {
    return MoveStats{t.moves, t.failed, t.bytes, t.seconds};
  };
  stats.memory = {.block_bytes = config_.pool.block_bytes,
                  .total = pool.total,
                  .free = pool.free,
                  .adapter_blocks = pool.adapter_blocks,
                  .history_blocks = pool.history_blocks,
                  .running_blocks = pool.running_blocks,
                  .invalid_blocks = pool.invalid_blocks,
                  .swap_total = pool.swap_total,
                  .swap_used = pool.swap_used,
                  .adapters = pool.adapters,
                  .swapped_tokens = pool.swapped_tokens,
                  .adapter_queries = pool.adapter_queries,
                  .adapter_hits = pool.adapter_hits,
                  .loads = moves(pool.loads),
                  .reads = moves(pool.reads),
                  .writes = moves(pool.writes),
                  .adapters_left = pool.adapters_left,
                  .kv_dropped = pool.kv_dropped};
}

void EngineCore::fill(EngineStats& stats) {
  const scheduler::SchedulerStats now = scheduler_.stats();
  // With thousands of waiting requests, collecting the names in every step would be slow.
  if (queues_changed_ || now.running != stats.running || now.waiting != stats.waiting ||
      now.preemptions != stats.preemptions) {
    stats.running_adapters = adapter_names(scheduler_.running());
    stats.waiting_adapters = adapter_names(scheduler_.waiting());
    queues_changed_ = false;
  }
  stats.running = now.running;
  stats.waiting = now.waiting;
  stats.preemptions = now.preemptions;
  fill_memory(stats);
  stats.mode = scheduler::mode_name(scheduler_.mode());
  if (const ModeSwitcher* switcher = runner_->switcher()) {
    stats.mode_switches = switcher->stats().switches;
    stats.merges = switcher->stats().merges;
    stats.merge_seconds = switcher->stats().merge_seconds;
  }
  stats.visual_queries = runner_->visual_cache().queries();
  stats.visual_hits = runner_->visual_cache().hits();
}

}  // namespace valora
