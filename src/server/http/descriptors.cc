#include "server/http/descriptors.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace valora::server {

// Each connection takes a file descriptor, and the usual soft limit is 1024. Some are reserved for
// files and for media downloads; connections that do not fit are not accepted.
size_t connections_within_descriptors(const HttpLimits& limits, size_t clients) {
  constexpr size_t kOtherFiles = 256;
  const size_t others = limits.status_connections + kOtherFiles + clients;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return limits.max_connections;
  const rlim_t wanted = limits.max_connections + others;
  if (files.rlim_cur < wanted) {
    const rlim_t before = std::exchange(files.rlim_cur, std::min<rlim_t>(files.rlim_max, wanted));
    if (setrlimit(RLIMIT_NOFILE, &files) != 0) files.rlim_cur = before;
  }
  if (files.rlim_cur >= wanted) return limits.max_connections;
  const size_t left = files.rlim_cur > 2 * others ? files.rlim_cur - others : files.rlim_cur / 2;
  const size_t most = std::max<size_t>(1, left);
  spdlog::warn("only {} files may be open (ulimit -n), so there are at most {} connections",
               files.rlim_cur, most);
  return most;
}

}  // namespace valora::server
