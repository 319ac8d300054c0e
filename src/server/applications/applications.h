// The server's applications, with the state of their limits and their metrics.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "server/applications/admission.h"
#include "server/applications/application.h"
#include "server/metrics/metrics.h"

namespace valora::server {

struct ServedApplication {
  ServedApplication(Application application, Metrics& all_metrics, const Clock& clock)
      : settings(std::move(application)),
        admission(settings, clock),
        metrics(all_metrics.of_application(settings)) {}
  ServedApplication(const ServedApplication&) = delete;
  ServedApplication& operator=(const ServedApplication&) = delete;

  const Application settings;
  Admission admission;
  ApplicationMetrics metrics;
};

// The set never changes, so lookups are thread-safe.
class Applications {
 public:
  // `metrics` and `clock` must outlive this object.
  Applications(const std::vector<Application>& applications, Metrics& metrics, const Clock& clock);

  bool empty() const { return all_.empty(); }
  // In file order.
  const std::vector<std::unique_ptr<ServedApplication>>& all() const { return all_; }
  // Null if there is none.
  ServedApplication* find(std::string_view name) const;
  ServedApplication* of_model(std::string_view model) const;

 private:
  using Index = std::map<std::string, ServedApplication*, std::less<>>;
  std::vector<std::unique_ptr<ServedApplication>> all_;
  Index by_name_, by_model_;
};

}  // namespace valora::server
