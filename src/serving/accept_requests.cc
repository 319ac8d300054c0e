// Turns a client's submission into an accepted request, or refuses it with an error.
#include <fmt/format.h>

#include <cmath>

#include "base/fault.h"
#include "serving/output/task_head.h"
#include "serving/sampling/bad_words.h"
#include "serving/serving_engine.h"

namespace valora::serving {
namespace {

// Task heads only answer with labels.
Status check_constraint(const GenerateRequest& request, const LoadedHead* head,
                        const Labels& labels, const std::optional<BoxNotation>& boxes) {
  const AnswerConstraint& constraint = *request.constraint;
  if (head == nullptr && request.task != Task::kClassify)
    return check_shape(constraint, {labels, boxes}, request.prompt);
  if (request.task == Task::kClassify || constraint.kind != AnswerConstraint::Kind::kLabels)
    return invalid("a task head answers with a label, whose form cannot be chosen",
                   constraint.param);
  if (head->problem_type == adapters::ProblemType::kRegression)
    return invalid("the task head of this model answers with numbers, not with a label",
                   constraint.param);
  return {};
}

Status check_token(int32_t id, int64_t vocab, const char* field) {
  if (id >= 0 && id < vocab) return {};
  return invalid(fmt::format("\"{}\" names token {}, which is out of vocabulary ({} tokens)", field,
                             id, vocab),
                 field);
}

// Checks the token ids that a request names.
Status check_named_tokens(const SamplingParams& sampling, const Language& language) {
  for (const auto& [id, bias] : sampling.logit_bias)
    VALORA_CHECK(check_token(id, language.vocab, "logit_bias"));
  for (const int32_t id : sampling.allowed_token_ids)
    VALORA_CHECK(check_token(id, language.vocab, "allowed_token_ids"));
  // A stop token that the model cannot generate is harmless.
  for (const int32_t id : sampling.stop_token_ids)
    if (id < 0 || id >= language.tokenizer->vocab_size())
      VALORA_CHECK(check_token(id, language.vocab, "stop_token_ids"));
  return {};
}

// A form that describes the thought leaves no room to close it.
Status check_budget(const GenerateRequest& request, const Language& language) {
  const auto& form = request.constraint;
  if (!request.thought.budget || !form || !language.thoughts || is_shape(form->kind) ||
      !includes_thought(*form, *language.thoughts->marks))
    return {};
  return invalid(fmt::format("\"thinking_token_budget\" cannot close a thought that \"{}\" "
                             "describes; leave one of them out",
                             form->param),
                 "thinking_token_budget");
}

// The time for masks that the request may take, together with its group.
std::shared_ptr<grammar::MaskAccount> account_of(const GenerateRequest& request,
                                                 const FormLimits& limits) {
  const auto make = [&limits] {
    return std::make_shared<grammar::MaskAccount>(grammar::MaskAccount::Limits{
        .most = limits.request, .token = limits.token, .further = limits.further});
  };
  if (!request.group) return make();
  RequestGroup& group = *request.group;
  const std::lock_guard lock(group.mutex);
  if (!group.masks) group.masks = make();
  return std::static_pointer_cast<grammar::MaskAccount>(group.masks);
}

}  // namespace

Result<std::vector<AppliedAdapter>> ServingEngine::applied(
    const std::vector<AdapterUse>& uses) const {
  std::vector<AppliedAdapter> adapters;
  for (const AdapterUse& use : uses) {
    VALORA_TRY(served, adapters_.find(use.name));
    if (!std::isfinite(use.scale))
      return invalid("the scale of adapter " + use.name + " is not finite", "lora");
    adapters.push_back({served.adapter, use.scale, served.head, served.form});
  }
  return adapters;
}

Result<std::shared_ptr<ActiveRequest>> ServingEngine::make_request(
    GenerateRequest request, std::shared_ptr<ResponseSink> sink) {
  auto active = std::make_shared<ActiveRequest>();
  VALORA_TRY(uses, applied(request.adapters));
  active->adapters = std::move(uses);
  VALORA_CHECK(check_uses(active->adapters));
  VALORA_TRY(head, choose_head(request, active->adapters));
  active->head = head;
  if (!active->adapters.empty()) active->form = active->adapters.front().form;
  active->boxes = active->form.boxes ? active->form.boxes : frontend_->boxes();
  if (request.constraint)
    VALORA_CHECK(check_constraint(request, head, active->form.labels, active->boxes));
  if (request.sampling.prompt_logprobs && (head || request.task != Task::kGenerate))
    return invalid(
        "\"prompt_logprobs\" needs an answer of the language model; a task head gives "
        "none",
        "prompt_logprobs");
  const Language& language = frontend_->language_of(active->adapters);
  active->language = &language;
  VALORA_CHECK(check_named_tokens(request.sampling, language));
  VALORA_CHECK(check_budget(request, language));
  // Allocates one bit for each id up to the highest allowed one.
  VALORA_TRY(sampling, resolve_sampling(request.sampling, frontend_->generation(),
                                        options_.max_logprobs, /*default_seed=*/0));
  sampling.bad_words = tokens_of(request.sampling.bad_words, *language.tokenizer);
  active->sampling = std::move(sampling);
  if (request.constraint) active->masks = account_of(request, options_.form_limits);
  VALORA_CHECK(frontend_->check(request.prompt, active->adapters));
  active->stop_strings = make_stop_strings(std::exchange(request.sampling.stop, {}));
  // Last, so that refused requests do not use up seeds.
  if (request.task == Task::kGenerate && !request.sampling.seed)
    active->sampling.seed = seeds_.next();
  active->handle = next_handle_++;
  active->request = std::move(request);
  active->sink = std::move(sink);
  active->arrival = clock_.now();
  // Requests without a client name share the turns of the unnamed client.
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
    return fault("the request could not be accepted", e);
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
  const bool constrained = request->constrained();
  request->preparations = constrained ? 2 : 1;
  try {
    // Start loading adapters while the prompt is prepared.
    if (auto needs = needs_of(request->adapters); !needs.empty())
      post_best_effort([needs = std::move(needs)](EngineCore& core) { core.expect(needs); });
    prepare(request);
  } catch (...) {
    undo_accept(*request);
    throw;
  }
  if (constrained) begin_grammar(request);
  return {};
}

// Undoes accept() for a request that no worker has.
void ServingEngine::undo_accept(const ActiveRequest& request) {
  {
    const std::lock_guard lock(mutex_);
    requests_.erase(request.handle);
    --queued_;
    --preparing_;
  }
  wake_.notify_one();  // a drain may be waiting for it
}

std::shared_ptr<ActiveRequest> ServingEngine::accepted(RequestHandle handle) {
  const std::lock_guard lock(mutex_);
  return requests_.at(handle);
}

}  // namespace valora::serving
