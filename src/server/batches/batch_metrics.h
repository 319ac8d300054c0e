// What /metrics says of batches.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/labels.h>

#include <utility>
#include <vector>

#include "server/batches/batch_runner.h"

namespace valora::server {

class BatchCollector final : public prometheus::Collectable {
 public:
  // `runner` must outlive this object. `labels`: of every series.
  BatchCollector(const BatchRunner& runner, prometheus::Labels labels)
      : runner_(runner), labels_(std::move(labels)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const BatchRunner& runner_;
  const prometheus::Labels labels_;
};

}  // namespace valora::server
