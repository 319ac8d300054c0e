// Retries work that failed for lack of memory, on a thread of its own, until it succeeds.
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
  // Called on the Rescue thread. If it throws, it is called again later.
  virtual void rescue() = 0;
};

// Thread-safe.
class Rescue {
 public:
  Rescue() : thread_([this] { run(); }) {}
  ~Rescue() { stop(); }

  // Reserves room for one object more or less, so that add() never allocates.
  void reserve_slot();
  void release_slot() noexcept;
  // At most as many objects may be added as were expected; further ones, and those added after
  // stop(), are ignored.
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
