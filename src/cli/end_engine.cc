#include "cli/end_engine.h"

#include <algorithm>
#include <cstdlib>
#include <future>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log/log.h"

namespace valora::cli {
namespace {

constexpr Duration kLeast = std::chrono::seconds(5);

}  // namespace

int end_engine(std::unique_ptr<serving::LocalEngine> engine, double stall_timeout) {
  if (stall_timeout <= 0) return 0;
  const bool is_stalled = !engine->standstill().empty();
  const Duration limit =
      is_stalled ? kLeast : std::max<Duration>(kLeast, from_seconds(stall_timeout));
  std::promise<void> ended;
  std::thread ending([&ended, last = std::move(engine)]() mutable {
    last.reset();
    ended.set_value();
  });
  if (ended.get_future().wait_for(limit) == std::future_status::timeout) {
    spdlog::critical("the engine has not ended within {:.0f} s; the process ends without it",
                     seconds(limit));
    std::_Exit(EXIT_FAILURE);
  }
  ending.join();
  return 0;
}

}  // namespace valora::cli
