// Runs work on all ranks of a communicator: rank 0 on the calling thread, the others on threads of
// their own.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/communicator.h"

namespace valora {

class RankThreads {
 public:
  using Body = std::function<void(int rank)>;

  // The communicator must outlive it. patience: after a failure, how long ranks may take to end
  // what they are doing.
  explicit RankThreads(Communicator& communicator, Duration patience = std::chrono::seconds(30));
  // Waits for the threads.
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  // Runs body(rank) on all ranks and returns when all have returned. Calls come from one thread.
  // Throws LostRank once a body has thrown, and from then on. A rank that does not return after a
  // failure may still read what the body refers to, so the process then ends with a line in the log
  // and status 1.
  void run(const Body& body);

 private:
  void work(int rank);
  void run_on(int rank, const Body& body) noexcept;
  void wait_for_all();

  Communicator& communicator_;
  const Duration patience_;
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  const Body* body_ = nullptr;  // null: the threads end
  uint64_t round_ = 0;
  int running_ = 0;  // threads
  std::vector<std::thread> threads_;
};

}  // namespace valora
