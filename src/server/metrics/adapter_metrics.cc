#include "server/metrics/adapter_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "server/metrics/labelled.h"

namespace valora::server {
namespace {

using prometheus::ClientMetric;
using prometheus::Labels;
using prometheus::MetricFamily;
using prometheus::MetricType;
using CountsByName = std::map<std::string, AdapterCounts::Counts>;
using Busiest = std::vector<CountsByName::const_pointer>;

ClientMetric::Histogram histogram_of(const DurationCounts& durations) {
  ClientMetric::Histogram out;
  out.sample_sum = durations.seconds;
  for (size_t i = 0; i < durations.counts.size(); ++i) {
    out.sample_count += durations.counts[i];
    const bool last = i == DurationCounts::kBounds.size();
    out.bucket.push_back({out.sample_count, last ? std::numeric_limits<double>::infinity()
                                                 : DurationCounts::kBounds[i]});
  }
  return out;
}

MetricFamily adapter_gauge(const char* name, const char* help) {
  return {name, help, MetricType::Gauge, {}};
}

void add_value(MetricFamily& family, const Labels& labels, const Labels& more, double value) {
  family.metric.push_back(labelled(labels, more));
  family.metric.back().gauge.value = value;
}

// vLLM's names: "gpu" for the memory the model reads from, whatever the device, and "cpu" for host
// memory.
const char* level_of(WeightsPlace place) {
  return place == WeightsPlace::kPool ? "gpu" : place == WeightsPlace::kHost ? "cpu" : nullptr;
}

std::vector<const AdapterCard*> placed(const std::vector<AdapterCard>& adapters,
                                       const CountsByName& counts) {
  std::vector<std::pair<std::tuple<int, bool, double>, const AdapterCard*>> ranked;
  for (const AdapterCard& adapter : adapters) {
    const auto known = counts.find(adapter.name);
    const double heat = known == counts.end() ? AdapterCounts::kCold : known->second.heat;
    const int place = adapter.place == WeightsPlace::kPool   ? 0
                      : adapter.place == WeightsPlace::kHost ? 1
                                                             : 2;
    ranked.push_back({{place, !adapter.pinned, -heat}, &adapter});
  }
  const size_t kept = std::min(ranked.size(), kMostPlaced);
  std::ranges::partial_sort(ranked, ranked.begin() + static_cast<std::ptrdiff_t>(kept));
  std::vector<const AdapterCard*> out;
  for (size_t i = 0; i < kept; ++i) out.push_back(ranked[i].second);
  return out;
}

void add_places(const std::vector<const AdapterCard*>& shown, const Labels& labels,
                std::vector<MetricFamily>& out) {
  MetricFamily loaded = adapter_gauge("vllm:lora_adapter_loaded",
                                      "1 for adapters in memory: level \"gpu\" in the pool, "
                                      "\"cpu\" in the host's memory beside it.");
  MetricFamily bytes = adapter_gauge("valora:adapter_bytes", "Bytes of loaded adapters.");
  for (const AdapterCard* adapter : shown) {
    const std::string rank = std::to_string(adapter->rank);
    if (const char* level = level_of(adapter->place))
      add_value(loaded, labels,
                {{"adapter_name", adapter->name},
                 {"level", level},
                 {"pinned", adapter->pinned ? "true" : "false"},
                 {"rank", rank}},
                1);
    add_value(bytes, labels, {{"adapter", adapter->name}, {"rank", rank}},
              static_cast<double>(adapter->bytes));
  }
  out.push_back(std::move(loaded));
  out.push_back(std::move(bytes));
}

// Several names may share weights, which are in the pool only once.
void add_pool(const std::vector<AdapterCard>& adapters, const MemoryStats& memory,
              const Labels& labels, std::vector<MetricFamily>& out) {
  std::set<Digest> known, in_pool;
  double bytes = 0;
  for (const AdapterCard& adapter : adapters) {
    if (adapter.place == WeightsPlace::kNone) continue;
    if (known.insert(adapter.digest).second) bytes += static_cast<double>(adapter.bytes);
    if (adapter.place == WeightsPlace::kPool) in_pool.insert(adapter.digest);
  }
  MetricFamily count =
      adapter_gauge("vllm:num_gpu_loaded_lora_adapters", "Adapters whose weights are in the pool.");
  add_value(count, labels, {}, static_cast<double>(in_pool.size()));
  out.push_back(std::move(count));
  if (known.empty() || bytes == 0 || memory.adapter_limit == 0) return;
  MetricFamily most = adapter_gauge("vllm:max_gpu_lora_adapters",
                                    "How many adapters of the loaded ones' mean size fit into the "
                                    "pool together. Absent while none is loaded.");
  const double room = double(memory.adapter_limit) * static_cast<double>(memory.block_bytes);
  add_value(most, labels, {}, std::floor(room / (bytes / static_cast<double>(known.size()))));
  out.push_back(std::move(most));
}

Busiest busiest(const CountsByName& counts) {
  Busiest all;
  for (const auto& entry : counts)
    if (!entry.first.empty()) all.push_back(&entry);
  const size_t kept = std::min(all.size(), kMostBusy);
  std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(kept), {},
                            [](const auto* entry) { return -entry->second.heat; });
  all.resize(kept);
  return all;
}

void add_work(const Busiest& busy, const Labels& labels, std::vector<MetricFamily>& out) {
  const auto counter = [&](const char* name, const char* help, auto value) {
    MetricFamily family{name, help, MetricType::Counter, {}};
    for (const auto* entry : busy) {
      family.metric.push_back(labelled(labels, {{"adapter_name", entry->first}}));
      family.metric.back().counter.value = static_cast<double>(entry->second.*value);
    }
    out.push_back(std::move(family));
  };
  const auto latency = [&](const char* name, const char* help, auto durations) {
    MetricFamily family{name, help, MetricType::Histogram, {}};
    for (const auto* entry : busy) {
      family.metric.push_back(labelled(labels, {{"adapter_name", entry->first}}));
      family.metric.back().histogram = histogram_of(entry->second.*durations);
    }
    out.push_back(std::move(family));
  };
  using Counts = AdapterCounts::Counts;
  counter("valora:adapter_requests_total", "Answered requests of the busiest adapters.",
          &Counts::requests);
  counter("valora:adapter_prompt_tokens_total", "Prompt tokens of the busiest adapters.",
          &Counts::prompt_tokens);
  counter("valora:adapter_generation_tokens_total", "Generated tokens of the busiest adapters.",
          &Counts::generated_tokens);
  latency("valora:adapter_time_to_first_token_seconds",
          "Arrival to first token, of the busiest adapters.", &Counts::ttft);
  latency("valora:adapter_time_per_output_token_seconds",
          "A request's mean time per token after the first, of the busiest adapters.",
          &Counts::tpot);
}

}  // namespace

void add_adapter_metrics(const std::vector<AdapterCard>& adapters, const MemoryStats& memory,
                         const AdapterCounts& counts, const Labels& labels,
                         std::vector<MetricFamily>& out) {
  const CountsByName all = counts.all();
  add_places(placed(adapters, all), labels, out);
  add_pool(adapters, memory, labels, out);
  MetricFamily loads{"vllm:lora_adapter_load_seconds",
                     "Time in which an adapter came into the pool, from the host's memory or its "
                     "file.",
                     MetricType::Histogram,
                     {}};
  loads.metric.push_back(labelled(labels));
  loads.metric.back().histogram = histogram_of(memory.load_times);
  out.push_back(std::move(loads));
  add_work(busiest(all), labels, out);
}

}  // namespace valora::server
