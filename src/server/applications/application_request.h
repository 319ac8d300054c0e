// One request in the limits and the metrics of its application.
#pragma once

#include <optional>

#include "server/applications/applications.h"

namespace valora::server {

// A request of no application is admitted, and nothing is counted. Not thread-safe.
class ApplicationRequest {
 public:
  ApplicationRequest() = default;
  ~ApplicationRequest() { failed(); }
  ApplicationRequest(const ApplicationRequest&) = delete;
  ApplicationRequest& operator=(const ApplicationRequest&) = delete;

  // Once, and first. The application, null for none, must outlive it. A refusal ends the request.
  std::optional<Admission::Refusal> admit(ServedApplication* application);
  // It waits no more.
  void first_output();
  // The end: the first of these calls counts, or the destructor as a failure.
  void answered(const AnswerLatency& latency);
  void failed();
  void refused();

 private:
  // Returns the application at the first call after admit(), else null.
  ServedApplication* end();

  ServedApplication* application_ = nullptr;  // null: none, or ended
  bool waiting_ = false;
};

}  // namespace valora::server
