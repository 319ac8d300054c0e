// A measurement of seconds: how fast this machine reads memory, and how near a token comes to that.
#pragma once

#include <string>

namespace valora::tuning {

struct MachineSpeed {
  int threads = 0;
  std::string dtype;     // of the weights
  double bandwidth = 0;  // bytes per second, one array read by all threads
  // The product of a weight and one token's row, which is bound by the reading of the weight.
  double token_bandwidth = 0;  // bytes of the weight per second
  double prompt_rate = 0;      // of 256 rows: multiplications and additions per second
};

// seconds: above 0, for all of it; the fastest passes count. Takes 0.5 GiB of memory.
MachineSpeed measure_speed(double seconds);

}  // namespace valora::tuning
