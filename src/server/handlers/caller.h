// The sender of a request, and the application the request belongs to.
#pragma once

#include <vector>

#include "server/handlers/applications/application_of.h"

namespace valora::server {

struct Caller {
  ServedApplication* application = nullptr;  // null: none
  ServedUser* user = nullptr;                // null: no particular user
  int priority = 0;                          // of the caller's requests
  bool background = false;                   // HttpRequest::background
};

// Errors: those of application_of(); kNotFound for a model that the user may not use, as if it did
// not exist; kUnauthorized for a priority above the highest allowed (docs/users.md).
Result<Caller> caller_of(const Service& service, const HttpRequest& request, const Target& target,
                         const Sharing& sharing);
// The response to an error of caller_of().
HttpResponse refuse_caller(const Error& error);

// Sets the properties that all of a caller's requests share: set_sharing(), the priority, and, for
// requests without an application, the user as tenant.
void set_caller(std::vector<GenerateRequest>& requests, const Sharing& sharing,
                const Caller& caller);

}  // namespace valora::server
