// A ServingEngine's prompts on their way to the engine thread.
#include "base/fault.h"
#include "serving/serving_engine.h"

namespace valora::serving {

void ServingEngine::prepare(const std::shared_ptr<ActiveRequest>& request) {
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
    prepared(request);
  };
  prompt_workers_->prepare(std::move(job));
}

// A failure here must not end the request, because its prompt is already being prepared: the error
// is reported when both are done.
void ServingEngine::begin_grammar(const std::shared_ptr<ActiveRequest>& request) {
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
      prepared(request);
    };
    form_workers_->prepare(std::move(job));
  } catch (const std::exception& e) {
    request->grammar = fault("the form of the answer could not be prepared", e);
    prepared(request);
  }
}

// The last worker to finish passes the request on, without allocating.
void ServingEngine::prepared(const std::shared_ptr<ActiveRequest>& request) {
  if (--request->preparations > 0) return;
  {
    const std::lock_guard lock(mutex_);
    --preparing_;
    inbox_.splice(inbox_.end(), request->admission);
  }
  wake_.notify_one();
}

void ServingEngine::stop_preparing() {
  std::vector<std::shared_ptr<ActiveRequest>> requests;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [handle, request] : requests_) requests.push_back(request);
  }
  for (const auto& request : requests) request->stop.request_stop();
  prompt_workers_->finish();
}

void ServingEngine::cancel(RequestHandle handle) {
  std::shared_ptr<ActiveRequest> request;
  {
    const std::lock_guard lock(mutex_);
    const auto it = requests_.find(handle);
    if (it == requests_.end()) return;
    request = it->second;
    request->cancelled = true;  // takes effect at once: no further calls to its sink
    inbox_.splice(inbox_.end(), request->cancellation);
  }
  wake_.notify_one();
  request->stop.request_stop();
  prompt_workers_->stopped(request->client, handle);
  form_workers_->stopped(handle);
}

}  // namespace valora::serving
