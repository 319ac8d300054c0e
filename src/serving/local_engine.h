// An engine in this process: the Engine interface, plus functions for commands and measurements.
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
  // From now on, waiting and running requests count as stalled (standstill()) if for `timeout` no
  // step ended or advanced, no claim was granted and no copy of memory finished. Call once, before
  // the first request.
  virtual void start_watchdog(Duration timeout) = 0;

  // Called on the engine thread after each step with its report, to measure the costs of steps.
  using StepProbe = std::function<void(const scheduler::StepReport&)>;
  virtual void set_step_probe(StepProbe probe) = 0;
  // Returns to the base weights with nothing merged, as at the start. Call only while there are no
  // requests. Waits for the engine thread. For measurements.
  virtual void forget_merged() = 0;
  // This engine's key in a file of step costs.
  virtual CostKey cost_key() const = 0;
  // Decisions made at start-up that the user should know.
  virtual const std::vector<std::string>& notes() const = 0;
  // Checks the invariants of scheduler and memory: returns an empty string, or the first violation.
  // Waits for the engine thread. For tests.
  virtual std::string check() = 0;
};

}  // namespace valora::serving
