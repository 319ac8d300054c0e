// A summary without quantiles: the number of observations and their sum, per route.
// prometheus::Summary is not used because it buffers observations even without quantiles, and
// writes past that buffer after a failed allocation.
#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <mutex>
#include <string>

namespace valora::server {

// Thread-safe.
class SizeTotals {
 public:
  SizeTotals(std::string name, std::string help) : name_(std::move(name)), help_(std::move(help)) {}

  void observe(const std::string& route, size_t bytes);

  prometheus::MetricFamily family() const;

 private:
  struct Totals {
    uint64_t count = 0;
    double bytes = 0;
  };

  std::string name_;
  std::string help_;
  mutable std::mutex mutex_;
  std::map<std::string, Totals> routes_;
};

}  // namespace valora::server
