// Computes the statistics of a run from its records.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lab/serve/record.h"

namespace valora::bench {

struct Distribution {
  size_t count = 0;
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};

// Percentiles are interpolated linearly, as in numpy's default.
Distribution distribution_of(std::vector<double> values);

// Failed requests count only in `requests`, `failed` and `errors`.
struct Group {
  int requests = 0, failed = 0;
  int short_answers = 0;  // answers with fewer tokens than requested
  int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  std::map<std::string, int> errors;
  Distribution ttft;  // seconds to the first token
  Distribution tpot;  // mean seconds per token of a request, after the first token
  Distribution itl;   // seconds between chunks of a stream
  Distribution e2e;   // seconds to the end of the answer
};

struct Summary {
  double seconds = 0;  // from sending the first request to the end of the last answer
  Group all;
  std::vector<std::pair<std::string, Group>> models;  // by name
  double requests_per_second = 0;                     // answered requests only
  double output_tokens_per_second = 0;
  double total_tokens_per_second = 0;  // prompt and answer tokens
};

Summary summarize(std::span<const RequestRecord> records);

}  // namespace valora::bench
