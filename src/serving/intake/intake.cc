#include "serving/intake/intake.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "serving/output/task_head.h"
#include "text/tokenizer.h"

namespace valora::serving {
namespace {

// Texts that an answer must not contain, as token sequences: each text as tokenized at the
// beginning of an answer and after a space (as in vLLM's bad_words). Other tokenizations of the
// same text are not detected.
std::vector<std::vector<int32_t>> tokens_of(const std::vector<std::string>& words,
                                            const text::Tokenizer& tokenizer) {
  std::vector<std::vector<int32_t>> out;
  for (const std::string& word : words) {
    std::vector<int32_t> first = tokenizer.encode(word, /*add_special_tokens=*/false);
    std::vector<int32_t> later = tokenizer.encode(" " + word, /*add_special_tokens=*/false);
    // A space that is a separate token comes before the word.
    const bool other = !first.empty() && later.size() == first.size() && later != first;
    if (!first.empty()) out.push_back(std::move(first));
    if (other) out.push_back(std::move(later));
  }
  return out;
}

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

Intake::Intake(const EngineOptions& options, const Frontend& frontend,
               const AdapterManager& adapters, RequestTable& requests, EngineLoop& loop,
               const Clock& clock)
    : options_(options),
      frontend_(frontend),
      adapters_(adapters),
      requests_(requests),
      loop_(loop),
      clock_(clock),
      seeds_(options.seed),
      prompt_workers_(frontend, std::max(1, options.media_workers), options.fetch.allow_http) {}

Intake::~Intake() {
  for (const auto& request : requests_.all()) request->stop.request_stop();
  prompt_workers_.finish();
}

Result<std::shared_ptr<ActiveRequest>> Intake::make_request(GenerateRequest request,
                                                            std::shared_ptr<ResponseSink> sink) {
  auto active = std::make_shared<ActiveRequest>();
  VALORA_TRY(uses, adapters_.applied(request.adapters));
  active->adapters = std::move(uses);
  VALORA_CHECK(check_uses(active->adapters));
  VALORA_TRY(head, choose_head(request, active->adapters));
  active->head = head;
  if (!active->adapters.empty()) active->form = active->adapters.front().form;
  active->boxes = active->form.boxes ? active->form.boxes : frontend_.boxes();
  if (request.constraint)
    VALORA_CHECK(check_constraint(request, head, active->form.labels, active->boxes));
  if (request.sampling.prompt_logprobs && (head || request.task != Task::kGenerate))
    return invalid(
        "\"prompt_logprobs\" needs an answer of the language model; a task head gives "
        "none",
        "prompt_logprobs");
  const Language& language = frontend_.language_of(active->adapters);
  active->language = &language;
  VALORA_CHECK(check_named_tokens(request.sampling, language));
  VALORA_CHECK(check_budget(request, language));
  // Allocates one bit for each id up to the highest allowed one.
  VALORA_TRY(sampling, resolve_sampling(request.sampling, frontend_.generation(),
                                        options_.max_logprobs, /*default_seed=*/0));
  sampling.bad_words = tokens_of(request.sampling.bad_words, *language.tokenizer);
  active->sampling = std::move(sampling);
  if (request.constraint) active->masks = account_of(request, options_.form_limits);
  VALORA_CHECK(frontend_.check(request.prompt, active->adapters));
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
  // They may run after the intake has ended.
  active->admission.emplace_back(
      [requests = &requests_, handle](EngineCore& core) { core.admit(requests->find(handle)); });
  active->cancellation.emplace_back([requests = &requests_, handle](EngineCore& core) {
    if (const auto open = requests->find(handle)) core.cancel(*open);
  });
  return active;
}

Result<RequestHandle> Intake::submit(GenerateRequest request, std::shared_ptr<ResponseSink> sink) {
  try {
    VALORA_TRY(active, make_request(std::move(request), std::move(sink)));
    VALORA_CHECK(accept(active));
    return active->handle;
  } catch (const std::exception& e) {
    return fault("the request could not be accepted", e);
  }
}

Status Intake::accept(const std::shared_ptr<ActiveRequest>& request) {
  VALORA_CHECK(requests_.add(request));
  const bool constrained = request->constrained();
  request->preparations = constrained ? 2 : 1;
  try {
    // Start loading adapters while the prompt is prepared.
    if (auto needs = needs_of(request->adapters); !needs.empty())
      loop_.post_best_effort([needs = std::move(needs)](EngineCore& core) { core.expect(needs); });
    prepare_prompt(request);
  } catch (...) {
    requests_.take_back(request->handle);
    loop_.wake();  // a drain may be waiting for it
    throw;
  }
  if (constrained) prepare_form(request);
  return {};
}

void Intake::prepare_prompt(const std::shared_ptr<ActiveRequest>& request) {
  PromptJob job;
  job.id = request->handle;
  job.client = request->client;
  job.prompt = std::exchange(request->request.prompt, {});  // data: URLs may hold megabytes
  // A head needs the prompt format it was trained with, for chat as well as classification.
  job.add_generation_prompt =
      request->head ? request->head->add_generation_prompt : request->generates();
  job.keep_tokens = request->request.truncate_prompt_tokens;
  job.adapters = request->adapters;
  job.stop = request->stop.get_token();
  job.done = [this, request](Result<PreparedPrompt> result) {
    request->prompt = std::move(result);
    prepared(*request);
  };
  prompt_workers_.prepare(std::move(job));
}

// A failure here must not end the request, because its prompt is already being prepared: the error
// is reported when both are done.
void Intake::prepare_form(const std::shared_ptr<ActiveRequest>& request) {
  try {
    const GenerateRequest& asked = request->request;
    FormJob job;
    job.id = request->handle;
    job.client = request->client;
    job.grammars = request->language->grammars;
    // Labels of a task without boxes are classes, not names of things.
    const Labels labels =
        asked.constraint->kind == AnswerConstraint::Kind::kBoxes && !request->form.boxes
            ? Labels()
            : request->form.labels;
    job.form = constraint_on_text(*asked.constraint, {labels, request->boxes});
    job.spacing = asked.json_whitespace.value_or(options_.json_whitespace);
    job.stop = request->stop.get_token();
    job.done = [this, request](Result<grammar::GrammarMatcher> result) {
      request->grammar = std::move(result);
      prepared(*request);
    };
    form_workers_.prepare(std::move(job));
  } catch (const std::exception& e) {
    request->grammar = fault("the form of the answer could not be prepared", e);
    prepared(*request);
  }
}

void Intake::prepared(ActiveRequest& request) {
  if (--request.preparations > 0) return;
  requests_.prepared();
  loop_.hand_over(request.admission);
}

void Intake::cancel(RequestHandle handle) {
  const std::shared_ptr<ActiveRequest> request = requests_.find(handle);
  if (!request) return;
  request->cancelled = true;  // takes effect at once: no further calls to its sink
  loop_.hand_over(request->cancellation);
  request->stop.request_stop();
  prompt_workers_.stopped(request->client, handle);
  form_workers_.stopped(handle);
}

}  // namespace valora::serving
