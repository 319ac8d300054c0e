// SIGTERM and SIGINT as the wish that a long command saves its work and ends.
#pragma once

#include <atomic>
#include <csignal>
#include <stop_token>
#include <thread>

namespace valora::cli {

// Takes both signals while it lives: the first one requests a stop, a second one ends the process
// as by default. Make it before other threads begin, which inherit the blocked signals.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  // The exit status of a command that a signal stopped, as in shells: 143 for SIGTERM, 130 for
  // SIGINT. 0: no signal came.
  int exit_status() const { return signal_ == 0 ? 0 : 128 + signal_; }

 private:
  void wait(const std::stop_token& end);

  sigset_t before_{}, signals_{};
  std::stop_source stop_;
  std::atomic<int> signal_ = 0;
  std::jthread waiter_;
};

}  // namespace valora::cli
