#include "base/files/map_faults.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace valora {
namespace {

// Lock-free, because the signal handler reads it.
struct WatchedMap {
  std::atomic<uintptr_t> begin = 0;  // 0: free
  std::atomic<uintptr_t> end = 0;
  std::atomic<const char*> path = nullptr;
};
std::array<WatchedMap, 1000> watched;
struct sigaction previous;

static_assert(std::atomic<uintptr_t>::is_always_lock_free);

void write_error(const char* text) {
  // If the write fails, there is no one left to tell.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

void on_bus_error(int /*signal*/, siginfo_t* info, void* /*context*/) {
  const auto place = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const WatchedMap& map : watched) {
    const uintptr_t begin = map.begin.load(std::memory_order_acquire);
    if (info->si_code <= 0 || begin == 0 || place < begin ||
        place >= map.end.load(std::memory_order_relaxed))
      continue;
    write_error("error: ");
    write_error(map.path.load(std::memory_order_relaxed));
    write_error(" became shorter, or unreadable, while it was in use\n");
    ::_exit(1);
  }
  // Another cause: restore the previous handler. A faulting instruction is executed again on
  // return.
  ::sigaction(SIGBUS, &previous, nullptr);
  if (info->si_code <= 0) ::raise(SIGBUS);
}

bool install() {
  struct sigaction action{};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  return ::sigaction(SIGBUS, &action, &previous) == 0;
}

constexpr uintptr_t kTaken = UINTPTR_MAX;  // no map begins there

}  // namespace

void register_mapping(const void* begin, size_t size, const char* path) {
  static const bool installed = install();
  if (!installed) return;
  const auto place = reinterpret_cast<uintptr_t>(begin);
  for (WatchedMap& map : watched) {
    uintptr_t free = 0;
    if (!map.begin.compare_exchange_strong(free, kTaken)) continue;
    map.path = path;
    map.end = place + size;
    map.begin.store(place, std::memory_order_release);
    return;
  }
}

void unregister_mapping(const void* begin) {
  const auto place = reinterpret_cast<uintptr_t>(begin);
  for (WatchedMap& map : watched)
    if (map.begin == place) map.begin = 0;
}

}  // namespace valora
