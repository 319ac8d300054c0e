#include "base/threads/rank_threads.h"

#include <cstdlib>
#include <string>

#include "base/log/log.h"

namespace valora {

RankThreads::RankThreads(Communicator& communicator, Duration patience)
    : communicator_(communicator), wait_limit_(patience) {
  for (int rank = 1; rank < communicator.ranks(); ++rank)
    threads_.emplace_back([this, rank] { work(rank); });
}

RankThreads::~RankThreads() {
  {
    const std::lock_guard lock(mutex_);
    body_ = nullptr;
    ++round_;
  }
  begin_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RankThreads::work(int rank) {
  for (uint64_t done = 0;;) {
    const Body* body;
    {
      std::unique_lock lock(mutex_);
      begin_.wait(lock, [&] { return round_ != done; });
      done = round_;
      body = body_;
    }
    if (!body) return;
    run_on(rank, *body);
    {
      const std::lock_guard lock(mutex_);
      --running_;
    }
    end_.notify_one();
  }
}

void RankThreads::run_on(int rank, const Body& body) noexcept {
  try {
    body(rank);
  } catch (const std::exception& e) {
    // Torch appends a stack trace after the first line.
    const std::string what = e.what();
    communicator_.fail(rank, what.substr(0, what.find('\n')));
  }
}

void RankThreads::run(const Body& body) {
  if (const auto failure = communicator_.failure()) throw RankLostError(*failure);
  {
    const std::lock_guard lock(mutex_);
    body_ = &body;
    ++round_;
    running_ = static_cast<int>(threads_.size());
  }
  begin_.notify_all();
  run_on(0, body);
  wait_for_all();
  if (const auto failure = communicator_.failure()) throw RankLostError(*failure);
}

void RankThreads::wait_for_all() {
  const auto all = [&] { return running_ == 0; };
  std::unique_lock lock(mutex_);
  // The communicator fails by itself once its time limit is over.
  while (!communicator_.failure())
    if (end_.wait_for(lock, std::chrono::milliseconds(250), all)) return;
  if (end_.wait_for(lock, wait_limit_, all)) return;
  spdlog::critical("{}, and not all ranks have ended since: the process ends",
                   *communicator_.failure());
  spdlog::shutdown();
  std::_Exit(EXIT_FAILURE);
}

}  // namespace valora
