// The threads that compile the forms of answers. Requests that wait for the same form share its
// compilation, which stops when the last of them is gone. Clients take turns, and forms that turn
// out to be slow have a thread of their own, so that they delay only each other.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>

#include "api/constraint.h"
#include "base/threads/fair_pool.h"
#include "serving/sampling/answer_grammars.h"

namespace valora::serving {

struct FormJob {
  uint64_t id = 0;     // of the request; unique among the waiting ones
  std::string client;  // clients take turns
  std::shared_ptr<AnswerGrammars> grammars;
  AnswerConstraint form;
  JsonSpacing spacing = JsonSpacing::kBounded;
  std::stop_token stop;  // the result is no longer needed
  // Called once, on any thread; must not throw. Errors name the form's field.
  std::function<void(Result<grammar::GrammarMatcher>)> done;
};

// Thread-safe.
class FormWorkers {
 public:
  FormWorkers() = default;
  // Ends what waits with kCancelled, and waits for the threads to let go of their compilations.
  ~FormWorkers();
  FormWorkers(const FormWorkers&) = delete;
  FormWorkers& operator=(const FormWorkers&) = delete;

  // If it throws, the job was not accepted, and `done` is not called.
  void prepare(FormJob job);
  // Call after requesting a job's stop: calls `done` with kCancelled before it returns, whatever
  // its compilation is doing. If a thread is calling `done` with the form at that moment, this
  // neither waits for the call nor calls it again. Unknown ids are ignored. Does not allocate.
  void stopped(uint64_t id);
  // From now on, no compilation begins. Forms that wait for one, or are being compiled on the slow
  // thread, get kUnavailable; cached ones are still answered, and so are those that are on a quick
  // thread at the moment.
  void close();

 private:
  struct Waiter {
    uint64_t id;
    std::string client, param;
    std::function<void(Result<grammar::GrammarMatcher>)> done;
  };
  using Waiters = std::list<Waiter>;
  // The vocabulary, and the form's digest in it.
  using Key = std::pair<const AnswerGrammars*, Digest>;
  struct Form;
  using FormPointer = std::shared_ptr<Form>;

  void add(FormJob job, Waiters& added);
  void post(const FormPointer& form, const Waiter& waiter);
  void run(const FormPointer& form, bool slow);
  bool begin(Form& form, bool slow);
  bool go_on_slowly(const FormPointer& form);
  Waiters end(Form& form);
  static void answer(const Waiters& waiters, const Result<grammar::GrammarMatcher>& result);

  std::mutex mutex_;  // guards the members below and the forms' contents; never held by `done`
  bool closed_ = false;
  std::map<Key, FormPointer> forms_;                     // those with waiters
  std::unordered_map<uint64_t, FormPointer> by_waiter_;  // the same, by the ids of their waiters

  // Declared last, so that the threads end before the members they use are destroyed.
  FairPool slow_{1, 1}, quick_{2, 1};
};

}  // namespace valora::serving
