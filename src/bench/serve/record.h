// What was seen of one request. Times are seconds since the run began.
#pragma once

#include <string>
#include <vector>

namespace valora::bench {

struct RequestRecord {
  std::string model;
  std::string error;  // its kind; empty: answered in full
  double sent = 0;
  double ended = 0;
  double first_token = 0;    // 0: not seen (no stream)
  std::vector<double> gaps;  // between successive pieces of the stream that brought tokens
  // As the server counts them.
  int prompt_tokens = 0;
  int cached_tokens = 0;
  int completion_tokens = 0;
  int wanted_tokens = 0;  // that it was to generate
};

}  // namespace valora::bench
