// A pool in simulated time, for tests.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "memory/pool.h"
#include "memory/simulated_mover.h"

namespace valora::memory::testing {

inline std::vector<int32_t> count_from(int32_t first, int n) {
  std::vector<int32_t> tokens(n);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

inline std::vector<Digest> keys_of(const KvIdentity& identity, const std::vector<int32_t>& tokens) {
  std::vector<Digest> keys;
  extend_block_keys(identity, tokens, keys);
  return keys;
}

inline AdapterNeed adapter(int number, int32_t blocks) {
  return {DigestBuilder().add("adapter").add(number).finish(), blocks};
}

// The identity of KV computed with one adapter at one scale.
inline KvIdentity identity_of(const AdapterNeed& need, float scale = 1) {
  return {DigestBuilder().add(need.digest).add(scale).finish(), {need}, {}};
}

// A running request: its adapters and blocks.
struct User {
  KvIdentity identity;
  Claim claim;
  BlockTable table;
  std::vector<Digest> keys;
};

struct World {
  // 1 ms to load a block of an adapter, 0.1 ms to copy a KV block, 16 ms to compute one.
  explicit World(PoolConfig config, SimulatedMover::Fate fate = {})
      : mover({.load_bandwidth = 1e3, .swap_bandwidth = 1e4}, clock, std::move(fate)),
        pool(with_costs(config), mover, clock) {}

  static PoolConfig with_costs(PoolConfig config) {
    config.block_bytes = 1;
    config.load_bandwidth = 1e3;
    config.swap_bandwidth = 1e4;
    config.prefill_seconds_per_token = 1e-3;
    return config;
  }

  void wait(Duration time) {
    clock.advance(time);
    pool.advance();
  }
  // Advances time until no move is in flight.
  void settle() {
    while (pool.moving()) {
      if (const auto end = mover.next_end()) clock.advance(*end - clock.now());
      pool.advance();
    }
  }
  // Claims, starts and computes all tokens. False if something was not ready or had no room.
  bool run(User& user, const std::vector<int32_t>& tokens) {
    const int n = static_cast<int>(tokens.size());
    user.keys = keys_of(user.identity, tokens);
    pool.advance();
    if (pool.claim(user.claim, user.identity, user.keys, n) != Readiness::kReady) return false;
    if (pool.start(user.claim, user.table, user.identity, user.keys, n) != Room::kReserved)
      return false;
    cached = user.table.committed * kBlockTokens;
    pool.commit(user.table, user.identity, user.keys, n);
    return true;
  }
  void end(User& user) {
    pool.release(user.table);
    pool.unclaim(user.claim);
  }
  // Runs a request from claim to end, waiting for whatever it needs. Returns the tokens found in
  // the pool, or -1.
  int serve(const KvIdentity& identity, const std::vector<int32_t>& tokens) {
    User user{identity, {}, {}, {}};
    for (int i = 0; i < 50; ++i) {
      if (run(user, tokens)) {
        end(user);
        return cached;
      }
      settle();
    }
    end(user);
    return -1;
  }

  SimulatedClock clock;
  SimulatedMover mover;
  Pool pool;
  int cached = 0;  // tokens found in the pool by the last run()
};

inline std::string check(const Pool& pool, const std::vector<const User*>& users = {}) {
  std::vector<const BlockTable*> tables;
  std::vector<const Claim*> claims;
  for (const User* user : users) {
    tables.push_back(&user->table);
    claims.push_back(&user->claim);
  }
  return pool.check(tables, claims);
}

}  // namespace valora::memory::testing
