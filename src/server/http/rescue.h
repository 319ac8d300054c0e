// What a lack of memory left undone: a thread of its own tries again until there is memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace valora::server {

class Rescuable {
 public:
  virtual ~Rescuable() = default;
  // On the rescuing thread. May throw: then it is called again later.
  virtual void rescue() = 0;
};

// Thread-safe.
class Rescue {
 public:
  Rescue() : thread_([this] { run(); }) {}
  ~Rescue() { stop(); }

  // Makes room for one object more or less, so that add() needs no memory.
  void expect_one_more();
  void expect_one_less() noexcept;
  // Objects may be added as often as they were expected; further ones, and those after stop(), are
  // ignored.
  void add(std::shared_ptr<Rescuable> object) noexcept;
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Rescuable>> waiting_;
  size_t expected_ = 0;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace valora::server
