#include "lab/memory/book_keeping.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/quantile.h"
#include "memory/pool.h"
#include "memory/simulated_mover.h"
#include "scheduler/scheduler.h"

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

// Stores conversations of 20 blocks each, with one request per conversation.
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

// Plans steps of 64 running requests of four adapters with a full queue. One request ends after
// each step.
double plan_time() {
  constexpr int kRunning = 64, kWaiting = 4096, kLength = 100, kAdapters = 4;
  SimulatedClock clock;
  SimulatedMover mover({}, clock);
  PoolConfig config;
  config.blocks = 2 * kRunning * blocks_for(kLength + kRounds) + kAdapters;
  Pool pool(config, mover, clock);
  scheduler::Scheduler scheduler(
      {.max_num_seqs = kRunning,
       .costs = {.step = 0.02, .decode_token = 1e-3, .rank = 1e-5, .merge = 0.05}},
      pool, scheduler::make_policy("valora").value(), clock);
  scheduler::RequestId ids = 0;
  const auto add = [&] {
    auto request = std::make_shared<scheduler::Request>();
    request->id = ++ids;
    request->adapter = request->merge = static_cast<int>(ids % kAdapters);
    request->decoder_adapters = {{request->adapter, 16}};
    request->merge_need = {DigestBuilder().add(request->adapter).finish(), 1};
    request->identity.adapter = request->merge_need.digest;
    request->identity.adapters = {request->merge_need};
    request->tokens.assign(kLength, static_cast<int32_t>(ids));
    request->prompt_tokens = kLength;
    (void)scheduler.add(std::move(request));
  };
  for (int i = 0; i < kRunning + kWaiting; ++i) add();
  std::vector<double> plans;
  for (int step = 0; step < 3 * kRounds; ++step) {
    clock.advance(std::chrono::milliseconds(20));
    scheduler::StepPlan plan;
    const double time = time_of([&] { plan = scheduler.plan(); });
    if (step >= kRounds) plans.push_back(time);
    scheduler.complete(plan);
    for (size_t i = 0; i < plan.items.size(); ++i) {
      if (plan.items[i].yields) plan.items[i].request->tokens.push_back(1);
      if (i == 0) {
        scheduler.finish(*plan.items[i].request);
        add();
      }
    }
  }
  return median(plans);
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
  const ReuseModel reuse;
  SwapStatistics s;
  s.reuse = &reuse;
  s.now = clock.now();
  s.slot = VisitWindow::slot_of(s.now, std::chrono::minutes(5));
  s.requests = kNodes;
  s.compute = 1e-3;
  for (int round = 0; round < kRounds; ++round)
    decide.push_back(time_of([&] { (void)swapper.leave(pool.tree(), s, kNodes / 20); }));
  return {median(match), median(insert), median(decide), plan_time()};
}

std::string book_keeping_text(const BookKeepingTimes& t) {
  return fmt::format(
      "book-keeping: a prompt of 4,096 tokens is matched in {:.3f} ms and stored in {:.3f} ms; "
      "what "
      "leaves is chosen from 100,000 KV nodes in {:.2f} ms; a step is planned in {:.3f} ms while "
      "4,096 requests wait\n",
      1e3 * t.match, 1e3 * t.insert, 1e3 * t.decide, 1e3 * t.plan);
}

}  // namespace valora::bench
