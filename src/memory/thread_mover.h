// A mover with worker threads. The engine supplies the copy function.
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
  // Carries out a move. Called concurrently on the worker threads, for different moves. An
  // exception counts as a failed copy.
  using Copy = std::function<Status(const Move&)>;
  struct Options {
    int threads = 1;
    double bandwidth = 0;  // bytes/s per thread at most; 0: no limit
  };

  // `wake` is called on a worker thread after each copy, for example to wake the polling thread.
  ThreadMover(Options options, Copy copy, std::function<void()> wake, const Clock& clock);
  // Waits for copies that have started; the others never run.
  ~ThreadMover() override;

  void start(Move move) override;
  std::vector<MoveResult> poll() override;
  void raise_priority(uint64_t id, Urgency urgency) override;
  bool cancel(uint64_t id) override;

 private:
  // Most urgent first, then in order of start().
  using Order = std::pair<Urgency, uint64_t>;

  void work();
  MoveResult run(const Move& move);

  const Options options_;
  const Copy copy_;
  const std::function<void()> notify_poller_;
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<Order, Move> queue_;
  std::vector<MoveResult> results_;  // with capacity for all moves in flight
  size_t in_flight_ = 0;             // started moves whose results poll() has not returned yet
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace valora::memory
