// Collectives through memory that all ranks share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/threads/communicator.h"

namespace valora {

class HostCommunicator final : public Communicator {
 public:
  struct Settings {
    Duration limit = std::chrono::seconds(30);      // how long a rank waits for the others
    Duration spin = std::chrono::microseconds(50);  // how long it spins before giving up its core
  };
  // ranks: at least one.
  HostCommunicator(int ranks, const Settings& settings);

  // Reduces in the order of the ranks, so that all ranks get the same bits, however many threads
  // they use. Each rank reduces one part of the values and writes the result to all ranks.
  void all_reduce(int rank, std::span<float> values, const ParallelFor& parallel,
                  Reduction reduction) override;
  void gather_columns(int rank, std::span<const float> part, int64_t rows, float* whole,
                      const ParallelFor& parallel) override;
  void broadcast(int rank, std::span<std::byte> bytes) override;
  bool all_agree(int rank, bool yes) override;
  void fail(int rank, const std::string& reason) noexcept override;
  std::optional<std::string> failure() const override;
  Stats stats() const override;

 private:
  // A rank's arguments to the current collective. Written before the rank enters; read by the
  // others while all ranks are in it.
  struct alignas(64) Rank {
    float* values = nullptr;
    const std::byte* bytes_to_all = nullptr;
    int64_t count = 0, columns = 0;
    std::atomic<uint64_t> entered = 0;  // number of collectives
    std::atomic<uint64_t> bytes = 0;
  };

  // Returns once all ranks have entered, so that their arguments can be read. Throws RankLostError.
  void enter(int rank);
  // Returns once all ranks are done, so that their arguments may change. Never throws, because all
  // ranks have entered and will get here.
  void leave(int rank, uint64_t bytes);
  // Waits until done() is true or the limit has passed, and returns done(), which may only read
  // atomics.
  template <typename Done>
  bool wait(Duration limit, const Done& done);
  void wake();
  // The first rank that has not entered this collective.
  int missing(uint64_t collective) const;

  const Settings settings_;
  std::vector<Rank> ranks_;
  // Twice the number of entries so far, plus one once a rank has failed. The value is final from
  // then on, so all ranks agree on the last collective that all of them entered.
  alignas(64) std::atomic<uint64_t> entries_ = 0;
  alignas(64) std::atomic<uint64_t> exits_ = 0;
  alignas(64) std::atomic<int> waiting_ranks_ = 0;
  std::atomic<int64_t> nanoseconds_ = 0;  // spent by rank 0 in collectives
  TimePoint begin_{};                     // of rank 0's current collective
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::string failure_;  // guarded by mutex_
};

}  // namespace valora
