// Metrics for readers who may not see all names of adapters, applications and users.
#pragma once

#include <prometheus/metric_family.h>

#include <functional>
#include <string_view>
#include <vector>

namespace valora::server {

struct VisibleNames {
  std::function<bool(std::string_view)> adapter;  // as requests name it
  std::function<bool(std::string_view)> tenant;   // an application, or "user NAME"
};

// Removes the series of names that are not visible, and such names from lists of names.
void hide_names(const VisibleNames& names, std::vector<prometheus::MetricFamily>& families);

}  // namespace valora::server
