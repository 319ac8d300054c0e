// The measurements of one request. Times are seconds since the run began.
#pragma once

#include <string>
#include <vector>

namespace valora::bench {

struct RequestRecord {
  std::string model;
  std::string error;  // kind of error; empty: complete answer
  double sent = 0;
  double ended = 0;
  double first_token = 0;    // 0: not measured (not streamed)
  std::vector<double> gaps;  // seconds between successive chunks with tokens
  // As counted by the server.
  int prompt_tokens = 0;
  int cached_tokens = 0;
  int completion_tokens = 0;
  int wanted_tokens = 0;  // requested length of the answer
};

}  // namespace valora::bench
