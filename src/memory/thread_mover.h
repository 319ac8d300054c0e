// A mover with worker threads. The copies themselves are functions of the engine.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "memory/mover.h"

namespace valora::memory {

class ThreadMover final : public Mover {
 public:
  // Copies the bytes of a move. Called on the worker threads, for different moves at once. An
  // exception counts as a failed copy.
  using Copy = std::function<Status(const Move&)>;
  struct Options {
    int threads = 1;
    double bandwidth = 0;  // bytes/s of each thread at most; 0: no limit
  };

  // `wake` is called on a worker thread after each copy, e.g. to wake the thread that polls.
  ThreadMover(Options options, Copy copy, std::function<void()> wake, const Clock& clock);
  // Waits for copies that have begun. The others never run.
  ~ThreadMover() override;

  void start(Move move) override;
  std::vector<MoveResult> poll() override;
  void raise_priority(uint64_t id, Urgency urgency) override;
  bool cancel(uint64_t id) override;

 private:
  // The most urgent first, then in the order of start().
  using Order = std::pair<Urgency, uint64_t>;

  void work();
  MoveResult run(const Move& move);

  const Options options_;
  const Copy copy_;
  const std::function<void()> wake_poller_;
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<Order, Move> queue_;
  std::vector<MoveResult> results_;  // with room for those of all that is under way
  size_t under_way_ = 0;             // moves that were started and have given no result to poll()
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace valora::memory
