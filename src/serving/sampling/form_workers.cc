#include "serving/sampling/form_workers.h"

#include <algorithm>
#include <optional>

#include "base/fault.h"

namespace valora::serving {
namespace {

using Started = Result<grammar::GrammarMatcher>;

// Fits std::string's inline buffer: cancelling takes no memory.
Error form_cancelled() { return {ErrorCode::kCancelled, "cancelled", {}}; }

Error form_refused_by_drain() {
  return {ErrorCode::kUnavailable,
          "the server is shutting down, and the form of the answer is not compiled yet; send the "
          "request to another server",
          {}};
}

}  // namespace

// A compilation and those who wait for it. Constant but for the members that the mutex guards.
struct FormWorkers::Form {
  Key key;
  std::shared_ptr<AnswerGrammars> grammars;
  AnswerConstraint constraint;
  JsonSpacing spacing;
  std::stop_source stop;

  // Guarded by the workers' mutex.
  Waiters waiters;
  bool running = false;
  bool slow = false;  // took more than the quick time
};

FormWorkers::~FormWorkers() {
  Waiters waiting;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    while (!forms_.empty()) waiting.splice(waiting.end(), end(*forms_.begin()->second));
  }
  answer(waiting, form_cancelled());
}

void FormWorkers::prepare(FormJob job) {
  Waiters added;
  added.push_back({job.id, std::move(job.client), job.form.param, std::move(job.done)});
  {
    const std::lock_guard lock(mutex_);
    // Under the lock: a stop that is requested later finds the waiter. Nothing here is used after
    // it, because the waiter's end may be the end of this object.
    if (!job.stop.stop_requested()) return add(std::move(job), added);
  }
  answer(added, form_cancelled());
}

// Requires the mutex.
void FormWorkers::add(FormJob job, Waiters& added) {
  const Key key{job.grammars.get(), AnswerGrammars::digest_of(job.form, job.spacing)};
  FormPointer& form = forms_[key];
  const Waiter& waiter = added.front();
  try {
    if (!form)
      form = std::make_shared<Form>(
          Form{key, std::move(job.grammars), std::move(job.form), job.spacing, {}, {}});
    by_waiter_.emplace(job.id, form);
    form->waiters.splice(form->waiters.end(), added);
    post(form, waiter);
  } catch (...) {
    by_waiter_.erase(job.id);
    if (form) std::erase_if(form->waiters, [&](const Waiter& one) { return one.id == job.id; });
    if (!form || form->waiters.empty()) forms_.erase(key);
    throw;
  }
}

// Each waiter has a turn of its client; the first turn compiles for all of them.
void FormWorkers::post(const FormPointer& form, const Waiter& waiter) {
  const bool slow = form->slow;
  (slow ? slow_ : quick_).post(waiter.client, waiter.id, [this, form, slow] { run(form, slow); });
}

void FormWorkers::stopped(uint64_t id) {
  Waiters leaving;
  {
    const std::lock_guard lock(mutex_);
    const auto known = by_waiter_.find(id);
    if (known == by_waiter_.end()) return;
    const FormPointer form = known->second;
    const auto waiter = std::ranges::find(form->waiters, id, &Waiter::id);
    leaving.splice(leaving.end(), form->waiters, waiter);
    by_waiter_.erase(known);
    if (form->waiters.empty()) {
      form->stop.request_stop();
      forms_.erase(form->key);
    }
  }
  for (FairPool* pool : {&quick_, &slow_}) (void)pool->withdraw(leaving.front().client, id);
  answer(leaving, form_cancelled());
}

void FormWorkers::close() {
  Waiters refused;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (auto next = forms_.begin(); next != forms_.end();) {
      const FormPointer form = (next++)->second;
      if (form->slow) refused.splice(refused.end(), end(*form));
    }
  }
  answer(refused, form_refused_by_drain());
}

// Requires the mutex. Stops the compilation, if there is one, and returns those who waited.
FormWorkers::Waiters FormWorkers::end(Form& form) {
  form.stop.request_stop();
  for (const Waiter& waiter : form.waiters) by_waiter_.erase(waiter.id);
  Waiters waiters = std::move(form.waiters);
  form.waiters.clear();
  forms_.erase(form.key);  // may be the last reference
  return waiters;
}

// Requires the mutex. False if another turn compiles the form, or nobody waits for it any more.
bool FormWorkers::begin(Form& form, bool slow) {
  if (form.waiters.empty() || form.running || form.slow != slow) return false;
  return form.running = true;
}

void FormWorkers::run(const FormPointer& form, bool slow) {
  bool closed;
  {
    const std::lock_guard lock(mutex_);
    if (!begin(*form, slow)) return;
    closed = closed_;
  }
  const std::stop_token stop = form->stop.get_token();
  AnswerGrammars& grammars = *form->grammars;
  std::optional<Started> made;
  if (closed)
    made = grammars.start_cached(form->constraint, form->spacing);
  else if (slow)
    made = grammars.start(form->constraint, form->spacing, stop);
  else
    made = grammars.try_start(form->constraint, form->spacing, stop);
  Waiters waiters;
  {
    const std::lock_guard lock(mutex_);
    form->running = false;
    if (form->waiters.empty()) return;
    if (!made && !closed_ && go_on_slowly(form)) return;
    if (!made) made = closed_ ? form_refused_by_drain() : out_of_memory();
    waiters = end(*form);
  }
  answer(waiters, *made);
}

// Requires the mutex. False if there is no memory for it.
bool FormWorkers::go_on_slowly(const FormPointer& form) {
  form->slow = true;
  try {
    for (const Waiter& waiter : form->waiters) post(form, waiter);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void FormWorkers::answer(const Waiters& waiters, const Started& result) {
  for (const Waiter& waiter : waiters) {
    Started its = out_of_memory();
    try {
      if (result.ok()) {
        its = *result;
      } else {
        Error error = result.error();
        if (error.code != ErrorCode::kCancelled) error.param = waiter.param;
        its = std::move(error);
      }
    } catch (const std::exception& e) {
      its = fault("the form of the answer could not be prepared", e);
    }
    waiter.done(std::move(its));
  }
}

}  // namespace valora::serving
