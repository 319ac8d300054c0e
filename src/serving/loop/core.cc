#include "serving/loop/core.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fault.h"
#include "grammar/schema/schema_check.h"
#include "serving/output/not_finite.h"

namespace valora::serving {
namespace {

using scheduler::StepItem;
using scheduler::StepPlan;

// Refuses a form whose shortest answer does not fit into `tokens`, the rest of the context: it
// would always be cut off there. Where max_tokens cuts it off, the request has said so.
Status check_form(const ActiveRequest& request, int tokens) {
  if (!request.stop_strings->empty() || !request.request.sampling.stop_token_ids.empty()) return {};
  const auto longest = static_cast<int64_t>(request.language->longest_token);
  const int64_t bytes = request.grammar->value().shortest_answer();
  if (bytes / std::max<int64_t>(longest, 1) <= tokens) return {};
  const AnswerConstraint& form = *request.request.constraint;
  const std::string keyword = form.kind == AnswerConstraint::Kind::kJsonSchema
                                  ? grammar::largest_minimum(form.text)
                                  : std::string();
  return invalid(fmt::format("the shortest answer of the demanded form has {} bytes, which {} "
                             "tokens of context cannot hold; lower {}, or shorten the prompt",
                             bytes, tokens, keyword.empty() ? "its repetitions" : keyword),
                 form.param);
}

}  // namespace

EngineCore::EngineCore(CoreConfig config, std::unique_ptr<scheduler::Policy> policy,
                       ModelRunner& runner, std::unique_ptr<memory::Mover> mover,
                       memory::PoolListener& listener, const Frontend& frontend, const Clock& clock,
                       CoreEvents events)
    : config_(std::move(config)),
      frontend_(frontend),
      clock_(clock),
      events_(std::move(events)),
      mover_(std::move(mover)),
      pool_(config_.pool, *mover_, clock, &listener),
      scheduler_(config_.scheduler, pool_, std::move(policy), clock),
      runner_(runner),
      loop_(scheduler_, runner_, *this, clock) {}

void EngineCore::admit(const std::shared_ptr<ActiveRequest>& request) {
  try {
    admit_prepared(request);
  } catch (const std::exception& e) {
    fail(*request, fault("the request could not be admitted", e));
  }
}

void EngineCore::admit_prepared(const std::shared_ptr<ActiveRequest>& request) {
  if (request->cancelled) return release(*request);
  Result<PreparedPrompt>& prompt = *request->prompt;
  if (!prompt.ok()) return fail(*request, prompt.error());
  if (request->grammar && !request->grammar->ok()) return fail(*request, request->grammar->error());
  if (request->request.task == Task::kTokenize)
    return tokenized(*request, std::move(prompt->tokens));
  const Status status =
      enqueue(request, std::make_shared<const PreparedPrompt>(std::move(prompt).value()));
  if (!status.ok()) fail(*request, status.error());
}

void EngineCore::tokenized(ActiveRequest& request, std::vector<int32_t> tokens) {
  request.usage.prompt_tokens = static_cast<int>(tokens.size());
  const FinalInfo info{request.usage, {}, 0, std::move(tokens)};
  release(request);
  if (!request.cancelled) request.sink->on_done(info);
}

// The most tokens of a sequence: the model's limit, or less if its adapters leave less room.
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

scheduler::TenantId EngineCore::tenant_of(const std::string& name) {
  return tenants_.try_emplace(name, static_cast<scheduler::TenantId>(tenants_.size()))
      .first->second;
}

Status EngineCore::enqueue(const std::shared_ptr<ActiveRequest>& request,
                           std::shared_ptr<const PreparedPrompt> prompt) {
  const int length = static_cast<int>(prompt->tokens.size());
  VALORA_TRY(most, room_for(*prompt));
  const int room = most - length;
  const auto& sampling = request->request.sampling;
  const int needed = !request->generates() ? 0 : sampling.max_tokens.value_or(1);
  if (room < needed)
    return invalid("This model's maximum context length is " + std::to_string(most) +
                       " tokens. However, you requested " +
                       std::to_string(int64_t{length} + needed) + " tokens (" +
                       std::to_string(length) + " in the prompt, " + std::to_string(needed) +
                       " in the completion). Please reduce the length of the prompt or completion.",
                   "messages");
  if (request->grammar) VALORA_CHECK(check_form(*request, room));
  request->usage.prompt_tokens = length;
  if (const auto top = sampling.prompt_logprobs) {
    VALORA_CHECK(PromptLogprobs::check(prompt->tokens.size(), *top));
    request->prompt_logprobs = std::make_unique<PromptLogprobs>(prompt->tokens.size(), *top);
  }
  if (request->request.task == Task::kEmbed &&
      frontend_.retrieval().embedding.pooling == EmbeddingRecipe::Pooling::kMean)
    request->state_sum = std::make_unique<StateSum>();
  const int sequences = !request->generates() ? 1 : sampling.n;
  for (int i = 0; i < sequences; ++i) {
    auto sequence = std::make_shared<Sequence>(request, i, prompt, request->language->tokenizer,
                                               sampling.max_tokens.value_or(room));
    sequence->id = next_sequence_++;
    sequence->ending_tokens = sampling.stop_token_ids;
    if (!sampling.ignore_eos)
      sequence->ending_tokens.insert(sequence->ending_tokens.end(),
                                     request->language->eos_token_ids.begin(),
                                     request->language->eos_token_ids.end());
    sequence->tenant = tenant_of(request->request.tenant);
    sequence->share = request->request.share;
    request->sequences.push_back(sequence);
    ++request->open_sequences;
    queues_changed_ = true;
    VALORA_CHECK(scheduler_.add(sequence));
  }
  return {};
}

// Ends a request and releases everything it holds.
void EngineCore::release(ActiveRequest& request) {
  const auto keep = request.shared_from_this();
  request.ended = true;
  queues_changed_ = true;
  for (const auto& sequence : request.sequences) scheduler_.finish(*sequence);
  request.sequences.clear();  // request and sequences own each other
  if (!request.started) events_.started();
  events_.ended(request.handle);
}

void EngineCore::cancel(ActiveRequest& request) {
  if (!request.sequences.empty()) release(request);
}

void EngineCore::fail(ActiveRequest& request, const Error& error) {
  if (request.ended) return;
  const auto keep = request.shared_from_this();
  const Error told = error_for_client(error, request.adapters);
  release(request);
  if (!request.cancelled) request.sink->on_error(told);
}

void EngineCore::fail_all(const Error& error) {
  while (scheduler::Request* const last = scheduler_.last()) on_failed(*last, error);
}

void EngineCore::on_planned(const StepPlan& plan) {
  for (const StepItem& item : plan.preparing) start(*item.request);
  for (const StepItem& item : plan.items) start(*item.request);
}

// A request was admitted: it runs, or its images are being encoded.
void EngineCore::start(const scheduler::Request& scheduled) {
  const auto& sequence = static_cast<const Sequence&>(scheduled);
  ActiveRequest& request = *sequence.owner;
  if (request.started || request.ended) return;  // ended: with an earlier sequence of this plan
  request.started = true;
  queues_changed_ = true;
  request.first_scheduled = sequence.first_scheduled;
  request.adapter_wait = sequence.adapter_wait;
  request.kv_wait = sequence.kv_wait;
  request.usage.cached_tokens = sequence.cached_tokens;
  events_.started();
  if (!request.cancelled)
    request.sink->on_start(request.usage, {sequence.prompt, &sequence.prompt->tokens});
}

void EngineCore::on_failed(scheduler::Request& request, const Error& error) {
  fail(*static_cast<Sequence&>(request).owner, error);
}

}  // namespace valora::serving
