#include "cli/progress/output_readers.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/log/stderr_sink.h"

namespace valora::cli {
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
