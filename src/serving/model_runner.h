// Runs the model for the engine thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "adapters/adapter_spec.h"
#include "api/stats.h"
#include "base/result.h"
#include "scheduler/step_executor.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora::serving {

// Implemented by the tensor side (engine/runner/runner.h). Only the engine thread calls it, inside
// run_thread(). Exceptions other than std::bad_alloc end the engine; their what() is for the log.
class ModelRunner : public scheduler::StepExecutor {
 public:
  // Calls loop(), the engine thread's whole life, with the set-up and clean-up that a thread
  // running the model needs.
  virtual void run_thread(const std::function<void()>& loop) = 0;
  // Called before each step.
  virtual void before_step() = 0;
  // The thread will wait, and another one of this process may compute: releases helper threads.
  virtual void release_threads() = 0;

  // No requests are left: drops data made for them.
  virtual void on_idle() = 0;
  // Prepares for the likeliest steps, for a few seconds at most. Called once, before any request.
  // Returns a note for the user; empty: there was nothing to prepare.
  virtual std::string warm_up() = 0;
  // Steps may use this adapter from now on.
  virtual void expect_adapter(const LoadedAdapter& adapter) = 0;
  // Does one short piece of work that makes later steps faster. Called while there are no requests.
  // Returns false if there is none until the next step or expect_adapter().
  virtual bool prepare_ahead() = 0;
  // Forgets the merged adapter. Call between steps.
  virtual void forget_merged() = 0;

  // Total time spent merging and restoring.
  virtual double merge_seconds() const = 0;
  // Fills in merges and visual embeddings.
  virtual void fill(EngineStats& stats) const = 0;
  // The probabilities of a head's labels, or the values of a regression. Does not throw.
  virtual Result<std::vector<float>> probabilities(adapters::ProblemType type,
                                                   const std::vector<float>& logits) const = 0;
};

}  // namespace valora::serving
