// One point of a sweep of `valora bench trace`.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace valora::bench {

struct TracePoint {
  double rate = 0;      // requests per second; of video: cameras / period
  double skewness = 0;  // share of the most popular adapter
  int adapters = 0;
  int cameras = 0;  // of video
  int replicas = 1;
};

// What differs between the points, e.g. "rate 2, skewness 0.5"; of a single point, its skewness or
// its cameras.
std::vector<std::string> names_of(const std::vector<TracePoint>& points);
Json json_of(const TracePoint& point);

}  // namespace valora::bench
