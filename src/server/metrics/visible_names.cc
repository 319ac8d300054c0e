#include "server/metrics/visible_names.h"

#include <algorithm>
#include <string>

namespace valora::server {
namespace {

using prometheus::ClientMetric;

// Names of adapters have no commas.
std::string visible_part(const std::string& list, const VisibleNames& names) {
  std::string kept;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view name = std::string_view(list).substr(begin, end - begin);
    if (names.adapter(name)) (kept += kept.empty() ? "" : ",") += name;
    begin = end + 1;
  }
  return kept;
}

bool is_hidden(const ClientMetric& metric, const VisibleNames& names) {
  return std::ranges::any_of(metric.label, [&](const ClientMetric::Label& label) {
    if (label.name == "adapter_name" || label.name == "adapter") return !names.adapter(label.value);
    return label.name == "application" && !names.tenant(label.value);
  });
}

}  // namespace

void hide_names(const VisibleNames& names, std::vector<prometheus::MetricFamily>& families) {
  for (prometheus::MetricFamily& family : families) {
    std::erase_if(family.metric,
                  [&](const ClientMetric& metric) { return is_hidden(metric, names); });
    for (ClientMetric& metric : family.metric)
      for (ClientMetric::Label& label : metric.label)
        if (label.name == "running_lora_adapters" || label.name == "waiting_lora_adapters")
          label.value = visible_part(label.value, names);
  }
}

}  // namespace valora::server
