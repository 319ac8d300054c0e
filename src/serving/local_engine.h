// An engine in this process: the Engine interface, and what commands and measurements need besides.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/engine.h"
#include "base/clock.h"
#include "serving/cost_key.h"

namespace valora::scheduler {
class Policy;
struct StepReport;
}  // namespace valora::scheduler

namespace valora::serving {

class LocalEngine : public Engine {
 public:
  // From now on, requests that wait or run stand still (standstill()) if for this time no step
  // ended or advanced, no claim was granted and no copy of memory ended. Once, before the first
  // request.
  virtual void watch_progress(Duration timeout) = 0;

  // Called after each step, on the engine thread, with what the step was and took. For measuring
  // the costs of steps.
  using StepProbe = std::function<void(const scheduler::StepReport&)>;
  virtual void set_step_probe(StepProbe probe) = 0;
  // The base weights are in use, as at the start, and no adapter is merged. Only while no request
  // is there. Waits for the engine thread. For measuring.
  virtual void forget_merged() = 0;
  // What the key of a file of step costs says of this engine.
  virtual CostKey cost_key() const = 0;
  // Decisions of the start to report to the user.
  virtual const std::vector<std::string>& notes() const = 0;
  // The invariants of scheduler and memory: empty, or the first violation. Waits for the engine
  // thread. For tests.
  virtual std::string check() = 0;
};

}  // namespace valora::serving
