// From records to the figures of a run.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/serve/record.h"

namespace valora::bench {

struct Distribution {
  size_t count = 0;
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};

// Percentiles lie between the two nearest values in proportion, as numpy's default has them.
Distribution distribution_of(std::vector<double> values);

// Failed requests count as requests and by their error, and in nothing else.
struct Group {
  int requests = 0, failed = 0;
  int short_answers = 0;  // with fewer tokens than asked for
  int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  std::map<std::string, int> errors;
  Distribution ttft;  // seconds to the first token
  Distribution tpot;  // a request's mean seconds a token after its first
  Distribution itl;   // seconds between pieces of a stream
  Distribution e2e;   // seconds to the end of the answer
};

struct Summary {
  double seconds = 0;  // from the first request's sending to the last one's end
  Group all;
  std::vector<std::pair<std::string, Group>> models;  // by name
  double requests_per_second = 0;                     // answered
  double output_tokens_per_second = 0;
  double total_tokens_per_second = 0;  // prompts and answers
};

Summary summarize(std::span<const RequestRecord> records);

}  // namespace valora::bench
