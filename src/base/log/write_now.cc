#include "base/log/write_now.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace valora {

size_t write_now(int descriptor, std::string_view text) {
  size_t done = 0;
  while (done < text.size()) {
    pollfd ready{descriptor, POLLOUT, 0};
    const int polled = ::poll(&ready, 1, 0);
    if (polled < 0 && errno == EINTR) continue;
    if (polled < 1) break;
    // A pipe that is ready has room for this many bytes.
    const size_t together = std::min<size_t>(text.size() - done, PIPE_BUF);
    const ssize_t written = ::write(descriptor, text.data() + done, together);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    done += static_cast<size_t>(written);
  }
  return done;
}

}  // namespace valora
