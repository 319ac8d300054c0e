#include "cli/progress/stop_signals.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "base/log/stderr_sink.h"

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

namespace {

bool has_left(int descriptor) {
  pollfd output{descriptor, POLLOUT, 0};
  return ::poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

void on_broken_pipe(int) {
  const int before = errno;
  if (has_left(STDOUT_FILENO) || has_left(STDERR_FILENO)) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);  // delivered when this handler returns
  }
  errno = before;
}

}  // namespace

void end_with_output_readers() {
  struct sigaction before{};
  if (::sigaction(SIGPIPE, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) return;
  std::signal(SIGPIPE, on_broken_pipe);
}

void outlive_output_readers() {
  std::signal(SIGPIPE, SIG_IGN);
  StderrSink::of_process()->wait_for_nobody();
}

}  // namespace valora::cli
