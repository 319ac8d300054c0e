#include "streams/sleep.h"

#include <condition_variable>
#include <mutex>

namespace valora::streams {

void sleep_for(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace valora::streams
