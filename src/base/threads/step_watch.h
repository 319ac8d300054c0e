// Ends steps that hang on devices: a thread in a device call cannot be made to return.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/threads/communicator.h"

namespace valora {

class StepWatch {
 public:
  struct Settings {
    Duration limit = std::chrono::seconds(30);     // for a step
    Duration patience = std::chrono::seconds(30);  // for its end after that
  };
  // The communicator must outlive this object. A step that exceeds the limit fails the
  // communicator, which ends its current collectives. If the step still does not end, the data that
  // it uses cannot be freed: the process logs a line and exits with status 1.
  StepWatch(Communicator& communicator, const Settings& settings);
  ~StepWatch();
  StepWatch(const StepWatch&) = delete;
  StepWatch& operator=(const StepWatch&) = delete;

  // A step, for the lifetime of this object. One at a time, on any thread.
  class Step {
   public:
    explicit Step(StepWatch* watch) : watch_(watch) {
      if (watch_) watch_->begin();
    }
    ~Step() {
      if (watch_) watch_->end();
    }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    StepWatch* watch_;  // null: the step is not watched
  };

 private:
  void begin();
  void end();
  void work();

  Communicator& communicator_;
  const Settings settings_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<TimePoint> begun_;  // start of the current step
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace valora
