// Treats SIGTERM and SIGINT as a request to save the work and stop.
#pragma once

#include <atomic>
#include <csignal>
#include <stop_token>
#include <thread>

namespace valora::cli {

// Handles both signals during its lifetime: the first requests a stop, a second one has its default
// effect. Create it before other threads start, because they inherit the blocked signals.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  // The exit status of a command stopped by a signal, as in shells: 143 for SIGTERM, 130 for
  // SIGINT. 0: no signal received.
  int exit_status() const { return signal_ == 0 ? 0 : 128 + signal_; }

 private:
  void wait(const std::stop_token& end);

  sigset_t before_{}, signals_{};
  std::stop_source stop_;
  std::atomic<int> signal_ = 0;
  std::jthread waiter_;
};

}  // namespace valora::cli
