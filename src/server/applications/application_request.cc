#include "server/applications/application_request.h"

#include <utility>

namespace valora::server {

std::optional<Admission::Refusal> ApplicationRequest::admit(ServedApplication* application) {
  if (!application) return std::nullopt;
  if (auto refusal = application->admission.admit()) {
    application->metrics.refused();
    return refusal;
  }
  application_ = application;
  waiting_ = true;
  return std::nullopt;
}

void ApplicationRequest::first_output() {
  if (std::exchange(waiting_, false)) application_->admission.end_waiting();
}

ServedApplication* ApplicationRequest::end() {
  first_output();
  return std::exchange(application_, nullptr);
}

void ApplicationRequest::answered(const AnswerLatency& latency) {
  if (ServedApplication* application = end()) application->metrics.answered(latency);
}

void ApplicationRequest::failed() {
  if (ServedApplication* application = end()) application->metrics.failed();
}

void ApplicationRequest::refused() {
  if (ServedApplication* application = end()) application->metrics.refused();
}

}  // namespace valora::server
