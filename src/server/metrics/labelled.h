// A metric with its labels.
#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/labels.h>

namespace valora::server {

inline prometheus::ClientMetric labelled(const prometheus::Labels& labels,
                                         const prometheus::Labels& more = {}) {
  prometheus::ClientMetric metric;
  for (const auto* part : {&labels, &more})
    for (const auto& [name, value] : *part) metric.label.push_back({name, value});
  return metric;
}

}  // namespace valora::server
