// Collectives of ranks that are threads of one process, through the memory that they share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/parallel.h"

namespace valora {

// A rank failed, or did not come to a collective in time: no collective can complete any more.
struct LostRank : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Every rank calls the same collectives in the same order, each from one thread at a time. A
// collective that all ranks have entered completes on all of them; any other one ends with LostRank
// on all ranks once a rank fails. There is no way back from that.
class Communicator {
 public:
  struct Settings {
    Duration limit = std::chrono::seconds(30);      // a rank waits for the others
    Duration spin = std::chrono::microseconds(50);  // of that time, without giving up its core
  };
  // At least one rank.
  Communicator(int ranks, const Settings& settings);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int ranks() const { return static_cast<int>(ranks_.size()); }

  enum class Reduction : uint8_t { kSum, kMax };
  // Replaces the values of all ranks by their sums or their maxima. They are taken in the order of
  // the ranks, so that all ranks have the same bits, whatever the threads. Each rank reduces a part
  // of the values and writes it to all. values: as many on every rank, or std::logic_error on all.
  // `parallel` is of the calling rank. Throws LostRank.
  void all_reduce(int rank, std::span<float> values, const ParallelFor& parallel,
                  Reduction reduction = Reduction::kSum);
  // Puts the parts of all ranks, each [rows, its columns], side by side into `whole` of rank 0:
  // [rows, all columns]. whole: null on the other ranks. Throws as all_reduce().
  void gather_columns(int rank, std::span<const float> part, int64_t rows, float* whole,
                      const ParallelFor& parallel);

  // The rank takes part in no collective any more. The first failure is the one that LostRank
  // tells of.
  void fail(int rank, const std::string& reason) noexcept;
  // What LostRank says; absent if no rank failed.
  std::optional<std::string> failure() const;

  struct Stats {
    uint64_t collectives = 0;
    uint64_t bytes = 0;  // that ranks read from or wrote to memory of other ranks, all together
    double seconds = 0;  // that rank 0 spent in collectives
  };
  Stats stats() const;

 private:
  // What a rank brings to the collective under way. Written before it enters; read by others while
  // all are in it.
  struct alignas(64) Rank {
    float* values = nullptr;
    int64_t count = 0, columns = 0;
    std::atomic<uint64_t> entered = 0;  // collectives
    std::atomic<uint64_t> bytes = 0;
  };

  // Returns once all ranks have entered, so that what they bring can be read. Throws LostRank.
  void enter(int rank);
  // Returns once all ranks are done, so that what they brought may change. All of them are on their
  // way: it does not throw.
  void leave(int rank, uint64_t bytes);
  // Until done(), which reads atomics alone, or the limit. Returns done().
  template <typename Done>
  bool wait(Duration limit, const Done& done);
  void wake();
  // The first rank that has not entered this collective.
  int missing(uint64_t collective) const;

  const Settings settings_;
  std::vector<Rank> ranks_;
  // Twice the number of entries so far, plus one once a rank has failed. Nothing is added from then
  // on, so all ranks agree on which collective was the last one that all entered.
  alignas(64) std::atomic<uint64_t> entries_ = 0;
  alignas(64) std::atomic<uint64_t> exits_ = 0;
  alignas(64) std::atomic<int> sleepers_ = 0;
  std::atomic<int64_t> nanoseconds_ = 0;  // of rank 0
  TimePoint begin_{};                     // of rank 0's collective under way
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::string failure_;  // mutex_
};

// A rank's place among those that share a model. Without a communicator there is one rank.
struct Shard {
  int rank = 0, of = 1;
  Communicator* communicator = nullptr;  // of `of` ranks
};

}  // namespace valora
