// Reads the engine's gauges and counters from its snapshot at each scrape.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/labels.h>
#include <prometheus/metric_family.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "api/engine.h"
#include "server/metrics/adapter_activity.h"
#include "server/metrics/adapter_counts.h"

namespace valora::server {

class EngineCollector final : public prometheus::Collectable {
 public:
  // All references must outlive this object.
  EngineCollector(const Engine& engine, const AdapterActivity& activity,
                  const AdapterCounts& counts, prometheus::Labels labels, int max_loras)
      : engine_(engine),
        activity_(activity),
        counts_(counts),
        labels_(std::move(labels)),
        max_loras_(max_loras) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  prometheus::MetricFamily family(std::string name, std::string help,
                                  prometheus::MetricType type) const;
  prometheus::MetricFamily gauge(std::string name, std::string help, double value,
                                 const prometheus::Labels& more = {}) const;
  // One gauge with one value for each value of `label`.
  prometheus::MetricFamily gauges(
      std::string name, std::string help, const char* label,
      std::initializer_list<std::pair<const char*, double>> values) const;
  prometheus::MetricFamily counter(std::string name, std::string help, double value) const;
  void add_collectives(const EngineStats& stats, std::vector<prometheus::MetricFamily>& out) const;
  void add_drafts(const EngineStats& stats, std::vector<prometheus::MetricFamily>& out) const;
  void add_media(const EngineStats& stats, std::vector<prometheus::MetricFamily>& out) const;
  void add_steps(const EngineStats& stats, std::vector<prometheus::MetricFamily>& out) const;
  prometheus::MetricFamily service(const EngineStats& stats) const;
  prometheus::MetricFamily costs(const EngineStats& stats) const;
  prometheus::MetricFamily mode(const EngineStats& stats) const;
  prometheus::MetricFamily waiting_by_reason(const EngineStats& stats) const;
  prometheus::MetricFamily lora_info(const EngineStats& stats) const;

  const Engine& engine_;
  const AdapterActivity& activity_;
  const AdapterCounts& counts_;
  const prometheus::Labels labels_;
  const int max_loras_;
};

}  // namespace valora::server
