// The time of the pool's and the scheduler's own work.
#pragma once

#include <string>

namespace valora::bench {

struct BookKeepingTimes {
  double match = 0;   // seconds to find and hold the prefix of a prompt of 4,096 tokens
  double insert = 0;  // to store its blocks
  double decide = 0;  // to choose what leaves from a tree of 100,000 KV nodes, to free 5 % of them
  double plan = 0;    // to plan a step of 64 requests while 4,096 wait, by the policy valora
};

// Medians of several rounds.
BookKeepingTimes measure_book_keeping();
std::string book_keeping_text(const BookKeepingTimes& times);

}  // namespace valora::bench
