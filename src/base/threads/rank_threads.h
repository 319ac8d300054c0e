// Runs work on all ranks of a communicator: rank 0 on the calling thread, each other rank on its
// own thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/threads/communicator.h"

namespace valora {

class RankThreads {
 public:
  using Body = std::function<void(int rank)>;

  // The communicator must outlive this object. patience: how long ranks may take to finish their
  // work after a failure.
  explicit RankThreads(Communicator& communicator, Duration patience = std::chrono::seconds(30));
  // Joins the threads.
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  // Runs body(rank) on all ranks and returns when all have returned. Must always be called from the
  // same thread. Throws RankLostError once a body has thrown, and on every later call. A rank that
  // does not return after a failure may still be using data that the body refers to, so the process
  // then logs a line and ends with status 1.
  void run(const Body& body);

 private:
  void work(int rank);
  void run_on(int rank, const Body& body) noexcept;
  void wait_for_all();

  Communicator& communicator_;
  const Duration wait_limit_;
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  const Body* body_ = nullptr;  // null tells the threads to end
  uint64_t round_ = 0;
  int running_ = 0;  // threads still in the body
  std::vector<std::thread> threads_;
};

}  // namespace valora
