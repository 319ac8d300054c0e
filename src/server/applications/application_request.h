// Applies an application's limits to one request and records it in the application's metrics.
#pragma once

#include <optional>

#include "server/applications/applications.h"

namespace valora::server {

// Without an application, every request is admitted and nothing is recorded. Not thread-safe.
class ApplicationRequest {
 public:
  ApplicationRequest() = default;
  ~ApplicationRequest() { failed(); }
  ApplicationRequest(const ApplicationRequest&) = delete;
  ApplicationRequest& operator=(const ApplicationRequest&) = delete;

  // Called first, and only once. The application must outlive this object; null: none. A rejection
  // ends the request.
  std::optional<Admission::Refusal> admit(ServedApplication* application);
  // The request no longer counts as waiting.
  void first_output();
  // Ends the request. Only the first of these calls counts; the destructor without one counts as a
  // failure.
  void answered(const AnswerLatency& latency);
  void failed();
  void refused();

 private:
  // Returns the application on the first call after admit(), null afterwards.
  ServedApplication* end();

  ServedApplication* application_ = nullptr;  // null: none, or ended
  bool waiting_ = false;
};

}  // namespace valora::server
