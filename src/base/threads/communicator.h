// Collective operations of ranks, which are threads of one process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "base/threads/parallel.h"

namespace valora {

// A rank failed or did not reach a collective in time. No later collective can complete.
struct RankLostError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Every rank must call the same collectives in the same order, each from one thread at a time, with
// values in the memory of its own device. A collective that all ranks have entered completes on all
// of them; once a rank fails, any other collective throws RankLostError on all ranks. A failure is
// permanent. On GPUs a collective is launched on the current stream, and its results are undefined
// after a failure: check failure() once the stream has finished.
class Communicator {
 public:
  explicit Communicator(int ranks) : count_(ranks) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int ranks() const { return count_; }

  enum class Reduction : uint8_t { kSum, kMax };
  // Replaces the values of all ranks by their sums or maxima, bit-identical on all ranks. values:
  // the same count on every rank. parallel: the calling rank's; used by collectives that the host
  // computes. Throws RankLostError, or std::logic_error on all ranks if the counts differ.
  virtual void all_reduce(int rank, std::span<float> values, const ParallelFor& parallel,
                          Reduction reduction) = 0;
  // Joins the parts of all ranks, each [rows, its columns], as columns of `whole` on rank 0: [rows,
  // all columns]. whole: null on the other ranks. A rank passes the same number of columns in every
  // call. Throws as all_reduce().
  virtual void gather_columns(int rank, std::span<const float> part, int64_t rows, float* whole,
                              const ParallelFor& parallel) = 0;
  // Overwrites the bytes of all ranks with rank 0's. Throws as all_reduce().
  virtual void broadcast(int rank, std::span<std::byte> bytes) = 0;
  // Returns true if all ranks pass true. The host waits for the other ranks. Throws RankLostError.
  virtual bool all_agree(int rank, bool yes) = 0;

  // Marks the rank as failed: it takes part in no later collective. RankLostError reports the first
  // failure.
  virtual void fail(int rank, const std::string& reason) noexcept = 0;
  // The message of RankLostError; absent if no rank has failed.
  virtual std::optional<std::string> failure() const = 0;

  struct Stats {
    uint64_t collectives = 0;
    uint64_t bytes = 0;  // read from or written to other ranks' memory, total of all ranks
    double seconds = 0;  // spent by rank 0 in collectives; 0 on GPUs

    Stats operator-(const Stats& earlier) const {
      return {collectives - earlier.collectives, bytes - earlier.bytes, seconds - earlier.seconds};
    }
  };
  virtual Stats stats() const = 0;
  // Counts a replay of captured launches, whose collectives were `stats`. Called by rank 0 only.
  virtual void count_replay(const Stats& stats) { static_cast<void>(stats); }

 private:
  const int count_;
};

// A rank's position among the ranks that share a model. There is one rank if there is no
// communicator.
struct Shard {
  int rank = 0, of = 1;
  Communicator* communicator = nullptr;  // with `of` ranks
};

}  // namespace valora
