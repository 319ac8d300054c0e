#include "cli/progress/stop_signals.h"

#include <ctime>

namespace valora::cli {

StopSignals::StopSignals() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  waiter_ = std::jthread([this](const std::stop_token& end) { wait(end); });
}

StopSignals::~StopSignals() {
  waiter_.request_stop();
  waiter_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StopSignals::wait(const std::stop_token& end) {
  constexpr timespec kPatience{0, 100'000'000};  // how often `end` is checked
  while (!end.stop_requested()) {
    const int signal = sigtimedwait(&signals_, nullptr, &kPatience);
    if (signal < 0) continue;
    if (signal_ != 0) {
      std::signal(signal, SIG_DFL);
      pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
      std::raise(signal);
    }
    signal_ = signal;
    stop_.request_stop();
  }
}

}  // namespace valora::cli
