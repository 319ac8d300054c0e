// One point in a sweep of `valora bench trace`.
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"

namespace valora::bench {

struct TracePoint {
  double rate = 0;      // requests per second; for video: of all cameras
  double skewness = 0;  // share of the most popular adapter
  int adapters = 0;
  int cameras = 0;  // for video
  int skills = 0;   // for video
  int replicas = 1;
};

// The parameters that differ between the points, such as "rate 2, skewness 0.5"; for a single
// point, its skewness or number of cameras.
std::vector<std::string> names_of(const std::vector<TracePoint>& points);
Json json_of(const TracePoint& point);

}  // namespace valora::bench
