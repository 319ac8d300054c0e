#include "server/applications/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace valora::server {

Admission::Admission(const Application& application, const Clock& clock)
    : application_(application), clock_(clock) {
  if (application.rate) bucket_.emplace(*application.rate, clock.now());
}

std::optional<Admission::Refusal> Admission::admit() {
  const std::lock_guard lock(mutex_);
  if (application_.max_waiting && waiting_ >= *application_.max_waiting)
    return Refusal{{ErrorCode::kQueueFull,
                    fmt::format("{} requests of the application `{}` wait for their first token, "
                                "which is its limit; try again later",
                                waiting_, application_.name),
                    {}}};
  const double wait = bucket_ ? bucket_->take(clock_.now()) : 0;
  if (wait > 0)
    return Refusal{{ErrorCode::kQueueFull,
                    fmt::format("the application `{}` takes {} requests per second; try again "
                                "later",
                                application_.name, *application_.rate),
                    {}},
                   std::max(1, static_cast<int>(std::ceil(std::min(wait, double{INT32_MAX}))))};
  ++waiting_;
  return std::nullopt;
}

void Admission::end_waiting() {
  const std::lock_guard lock(mutex_);
  --waiting_;
}

int Admission::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

}  // namespace valora::server
