// Watches the progress of an engine on a thread of its own, because the engine thread itself may be
// stuck, and ends drains whose requests stall.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "scheduler/progress_watch.h"
#include "serving/intake/intake.h"

namespace valora::serving {

// Thread-safe, except start(). No other lock is taken while its mutex is held.
class Watch {
 public:
  // All of them must outlive the watch.
  Watch(RequestTable& requests, EngineLoop& loop, Intake& intake, const Clock& clock)
      : requests_(requests), loop_(loop), intake_(intake), clock_(clock) {}
  ~Watch() { stop(); }

  // LocalEngine::start_watchdog().
  void start(Duration timeout);
  void stop();
  // Engine::drain() and standstill().
  void drain(std::function<void()> done);
  std::string standstill() const;
  // How often requests stalled.
  uint64_t stalls() const { return stalls_; }

 private:
  void run(Duration timeout);
  void set_standstill(std::string why);
  void look(scheduler::ProgressWatch& watch);
  std::string describe(const scheduler::ProgressWatch& watch, const EngineLoop::Round& round,
                       TimePoint now) const;
  void end_drains();

  RequestTable& requests_;
  EngineLoop& loop_;
  Intake& intake_;
  const Clock& clock_;
  // The error of requests that a drain ends, created while memory is available.
  const Error stalled_{ErrorCode::kUnavailable,
                       "the server is shutting down, and the request has stalled; send it to "
                       "another server",
                       {}};
  std::atomic<uint64_t> stalls_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool stopping_ = false;
  std::string standstill_;  // written by the watch's thread alone
  std::thread thread_;      // after start()
};

}  // namespace valora::serving
