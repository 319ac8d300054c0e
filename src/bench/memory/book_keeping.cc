#include "bench/memory/book_keeping.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "memory/pool.h"
#include "memory/simulated_mover.h"

namespace valora::bench {
namespace {

using namespace memory;

constexpr int kTokens = 4096, kRounds = 51;
constexpr int32_t kNodes = 100'000;

std::vector<Digest> keys_of(int prompt, int tokens) {
  std::vector<int32_t> ids(tokens);
  std::iota(ids.begin(), ids.end(), prompt * tokens);
  std::vector<Digest> keys;
  extend_block_keys({}, ids, keys);
  return keys;
}

template <typename Work>
double time_of(Work&& work) {
  const TimePoint begin = real_clock().now();
  work();
  return seconds(real_clock().now() - begin);
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// Conversations of 20 blocks each, and one request per conversation.
void fill(Pool& pool, SimulatedClock& clock) {
  constexpr int kBlocks = 20;
  for (int i = 0; i < kNodes / kBlocks; ++i) {
    clock.advance(std::chrono::milliseconds(1));
    pool.advance();
    const auto keys = keys_of(i, kBlocks * kBlockTokens);
    Claim claim;
    BlockTable table;
    pool.claim(claim, {}, keys, kBlocks * kBlockTokens);
    pool.start(claim, table, {}, keys, kBlocks * kBlockTokens);
    pool.commit(table, {}, keys, kBlocks * kBlockTokens);
    pool.release(table);
  }
}

}  // namespace

BookKeepingTimes measure_book_keeping() {
  SimulatedClock clock;
  SimulatedMover mover({}, clock);
  PoolConfig config;
  config.blocks = kNodes + 2 * kTokens / kBlockTokens;
  Pool pool(config, mover, clock);
  fill(pool, clock);
  std::vector<double> match, insert, decide;
  for (int round = 0; round < kRounds; ++round) {
    const auto keys = keys_of(1'000'000 + round, kTokens);
    Claim claim;
    BlockTable table;
    pool.start(claim, table, {}, keys, kTokens);
    insert.push_back(time_of([&] { pool.commit(table, {}, keys, kTokens); }));
    pool.release(table);
    match.push_back(time_of([&] { pool.start(claim, table, {}, keys, kTokens + 1); }));
    pool.release(table);
  }
  const Swapper swapper{SwapperConfig{}};
  SwapStatistics s;
  s.now = clock.now();
  s.slot = VisitWindow::slot_of(s.now, std::chrono::minutes(5));
  s.requests = kNodes;
  s.compute = 1e-3;
  for (int round = 0; round < kRounds; ++round)
    decide.push_back(time_of([&] { (void)swapper.leave(pool.tree(), s, kNodes / 20); }));
  return {median(match), median(insert), median(decide)};
}

std::string book_keeping_text(const BookKeepingTimes& t) {
  return fmt::format(
      "book-keeping: a prompt of 4,096 tokens is matched in {:.3f} ms and stored in {:.3f} ms; "
      "what "
      "leaves is chosen from 100,000 KV nodes in {:.2f} ms\n",
      1e3 * t.match, 1e3 * t.insert, 1e3 * t.decide);
}

}  // namespace valora::bench
