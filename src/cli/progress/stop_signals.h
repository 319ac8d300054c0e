// What SIGTERM, SIGINT and readers that leave mean to the program.
#pragma once

#include <atomic>
#include <csignal>
#include <stop_token>
#include <thread>

namespace valora::cli {

// Treats SIGTERM and SIGINT as a request to save the work and stop. Handles both signals during its
// lifetime: the first requests a stop, a second one has its default effect. Create it before other
// threads start, because they inherit the blocked signals.
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

// What happens when nobody reads the output any longer: `valora generate … | head -1`.
// Ends the process quietly, as SIGPIPE does, once it writes while the reader of stdout or stderr
// has left. Other broken pipes and sockets are errors of their writes alone: a peer that leaves
// must not end the process. No effect if SIGPIPE is ignored already.
void end_with_output_readers();

// For servers, in place of the above: a write to a pipe without a reader is an error, and the log
// (StderrSink) waits for no reader.
void outlive_output_readers();

}  // namespace valora::cli
