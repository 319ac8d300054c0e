#include "base/threads/host_communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/threads/spin.h"

namespace valora {
namespace {

constexpr int64_t kLine = 16;        // floats per cache line; no two ranks write to the same line
constexpr int64_t kBlock = 2048;     // floats reduced at a time, few enough to stay in cache
constexpr int64_t kGrain = 1 << 15;  // floats per thread, at least

// The range [first, last) of values that a rank reduces.
std::pair<int64_t, int64_t> reduced_by(int64_t count, int64_t rank, int64_t ranks) {
  const int64_t lines = (count + kLine - 1) / kLine;
  const auto edge = [&](int64_t r) { return std::min(count, lines * r / ranks * kLine); };
  return {edge(rank), edge(rank + 1)};
}

void reduce(float* into, const float* other, int64_t count, Communicator::Reduction reduction) {
  if (reduction == Communicator::Reduction::kSum)
    for (int64_t i = 0; i < count; ++i) into[i] += other[i];
  else
    for (int64_t i = 0; i < count; ++i) into[i] = std::max(into[i], other[i]);
}

}  // namespace

HostCommunicator::HostCommunicator(int ranks, const Settings& settings)
    : Communicator(std::max(ranks, 1)),
      settings_(settings),
      ranks_(static_cast<size_t>(std::max(ranks, 1))) {}

template <typename Done>
bool HostCommunicator::wait(Duration limit, const Done& done) {
  const TimePoint begin = real_clock().now();
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      spin_pause();
    }
  } while (real_clock().now() - begin < settings_.spin);
  // Each wait counts at most as one nap: if the whole process was suspended, that time does not
  // count towards the limit.
  const Duration nap = std::min<Duration>(limit, std::chrono::milliseconds(250));
  std::unique_lock lock(mutex_);
  ++waiting_ranks_;
  for (Duration slept{}; slept < limit && !done();) {
    const TimePoint asleep = real_clock().now();
    wake_.wait_for(lock, nap);
    slept += std::min(nap, real_clock().now() - asleep);
  }
  --waiting_ranks_;
  return done();
}

// A sleeper registers before it checks done(); a waker checks for sleepers after its change. So at
// least one of the two sees the other.
void HostCommunicator::wake() {
  if (waiting_ranks_.load() == 0) return;
  {
    const std::lock_guard lock(mutex_);
  }
  wake_.notify_all();
}

int HostCommunicator::missing(uint64_t collective) const {
  for (size_t r = 0; r < ranks_.size(); ++r)
    if (ranks_[r].entered.load() < collective) return static_cast<int>(r);
  return 0;
}

void HostCommunicator::enter(int rank) {
  if (rank == 0) begin_ = real_clock().now();
  const uint64_t collective = ++ranks_[rank].entered;
  uint64_t entries = entries_.load();
  while (entries % 2 == 0 && !entries_.compare_exchange_weak(entries, entries + 2)) {
  }
  if (entries % 2 != 0) throw RankLostError(failure().value());
  const uint64_t all = 2 * collective * ranks_.size();
  if (entries + 2 == all) return wake();
  if (!wait(settings_.limit, [&] { return entries_.load() >= all || entries_.load() % 2 != 0; })) {
    const int lost = missing(collective);
    fail(lost,
         "it did not enter a collective within " +
             std::to_string(std::chrono::ceil<std::chrono::seconds>(settings_.limit).count()) +
             " s");
  }
  if (entries_.load() < all) throw RankLostError(failure().value());
}

void HostCommunicator::leave(int rank, uint64_t bytes) {
  ranks_[rank].bytes += bytes;
  const uint64_t all = ranks_[rank].entered.load() * ranks_.size();
  if (++exits_ == all)
    wake();
  else
    while (!wait(settings_.limit, [&] { return exits_.load() >= all; })) {
    }
  if (rank == 0) nanoseconds_ += (real_clock().now() - begin_).count();
}

void HostCommunicator::all_reduce(int rank, std::span<float> values, const ParallelFor& parallel,
                                  Reduction reduction) {
  const auto count = static_cast<int64_t>(values.size());
  ranks_[rank].values = values.data();
  ranks_[rank].count = count;
  enter(rank);
  const bool same =
      std::ranges::all_of(ranks_, [&](const Rank& other) { return other.count == count; });
  const auto [first, last] = reduced_by(count, rank, ranks());
  const auto reduce_all = [&](int64_t begin, int64_t end) {
    for (; begin < end; begin += kBlock) {
      const int64_t n = std::min(kBlock, end - begin);
      float* const reduced = ranks_[0].values + begin;
      for (size_t r = 1; r < ranks_.size(); ++r)
        reduce(reduced, ranks_[r].values + begin, n, reduction);
      for (size_t r = 1; r < ranks_.size(); ++r)
        std::memcpy(ranks_[r].values + begin, reduced, static_cast<size_t>(n) * sizeof(float));
    }
  };
  if (same) parallel(first, last, kGrain, reduce_all);
  leave(rank,
        same ? 2 * (ranks_.size() - 1) * static_cast<uint64_t>(last - first) * sizeof(float) : 0);
  if (!same) throw std::logic_error("an all-reduce of different numbers of values");
}

void HostCommunicator::gather_columns(int rank, std::span<const float> part, int64_t rows,
                                      float* whole, const ParallelFor& parallel) {
  Rank& own = ranks_[rank];
  own.values = whole;
  own.count = rows;
  own.columns = rows == 0 ? 0 : static_cast<int64_t>(part.size()) / rows;
  enter(rank);
  const bool same =
      std::ranges::all_of(ranks_, [&](const Rank& other) { return other.count == rows; });
  int64_t before = 0, all = 0;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (std::cmp_less(r, rank)) before += ranks_[r].columns;
    all += ranks_[r].columns;
  }
  const auto copy = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      std::copy_n(part.data() + row * own.columns, own.columns,
                  ranks_[0].values + row * all + before);
  };
  if (same) parallel(0, rows, 1, copy);
  leave(rank, same && rank != 0 ? part.size_bytes() : 0);
  if (!same) throw std::logic_error("a gathering of different numbers of rows");
}

void HostCommunicator::broadcast(int rank, std::span<std::byte> bytes) {
  Rank& own = ranks_[rank];
  own.bytes_to_all = bytes.data();
  own.count = static_cast<int64_t>(bytes.size());
  enter(rank);
  const bool same =
      std::ranges::all_of(ranks_, [&](const Rank& other) { return other.count == own.count; });
  if (same && rank != 0 && !bytes.empty())
    std::memcpy(bytes.data(), ranks_[0].bytes_to_all, bytes.size());
  leave(rank, same && rank != 0 ? bytes.size() : 0);
  if (!same) throw std::logic_error("a broadcast of different numbers of bytes");
}

bool HostCommunicator::all_agree(int rank, bool yes) {
  float against = yes ? 0 : 1;
  all_reduce(rank, {&against, 1}, serial_for, Reduction::kMax);
  return against == 0;
}

void HostCommunicator::fail(int rank, const std::string& reason) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (failure_.empty())
      failure_ =
          "rank " + std::to_string(rank) + " of " + std::to_string(ranks()) + " failed: " + reason;
  } catch (...) {  // out of memory; failure() then returns a fixed text
  }
  entries_ |= 1;
  wake();
}

std::optional<std::string> HostCommunicator::failure() const {
  if (entries_.load() % 2 == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return failure_.empty() ? "a rank failed" : failure_;
}

Communicator::Stats HostCommunicator::stats() const {
  Stats stats{exits_.load() / ranks_.size(), 0, static_cast<double>(nanoseconds_.load()) * 1e-9};
  for (const Rank& rank : ranks_) stats.bytes += rank.bytes.load();
  return stats;
}

}  // namespace valora
