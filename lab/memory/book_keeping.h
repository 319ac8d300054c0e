// Times the bookkeeping of the pool and the scheduler.
#pragma once

#include <string>

namespace valora::bench {

struct BookKeepingTimes {
  double match = 0;   // to find and hold the prefix of a 4,096-token prompt, in seconds
  double insert = 0;  // to store its blocks
  double decide = 0;  // to choose victims among 100,000 KV nodes until 5 % are freed
  double plan = 0;    // to plan a step of 64 requests while 4,096 wait, with policy valora
};

// Medians over several rounds.
BookKeepingTimes measure_book_keeping();
std::string book_keeping_text(const BookKeepingTimes& times);

}  // namespace valora::bench
