// What runs the model for the engine thread.
#pragma once

#include <functional>
#include <vector>

#include "adapters/adapter_spec.h"
#include "api/stats.h"
#include "base/result.h"
#include "scheduler/step_executor.h"

namespace valora::serving {

// Implemented by the tensor side (engine/runner.h). The engine thread alone calls it, but for
// run_thread(), which it is within. Exceptions other than std::bad_alloc end the engine; their
// what() is for the log.
class ModelRunner : public scheduler::StepExecutor {
 public:
  // Calls loop(), which is all that the engine thread does, with what a thread that runs the model
  // needs around it.
  virtual void run_thread(const std::function<void()>& loop) = 0;
  // The next call is a step.
  virtual void before_step() = 0;
  // The thread waits, and another one of this process may compute: gives back helper threads.
  virtual void release_threads() = 0;

  // No request is left: drops what was made for them.
  virtual void on_idle() = 0;
  // As if no adapter had been merged. Between steps.
  virtual void forget_merged() = 0;

  // Time of merging and restoring so far.
  virtual double merge_seconds() const = 0;
  // Fills in merges and visual embeddings.
  virtual void fill(EngineStats& stats) const = 0;
  // The probabilities of a head's labels; of a regression, its values. Does not throw.
  virtual Result<std::vector<float>> probabilities(adapters::ProblemType type,
                                                   const std::vector<float>& logits) const = 0;
};

}  // namespace valora::serving
