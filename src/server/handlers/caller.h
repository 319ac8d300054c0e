// Who sends a request, and to which application it belongs.
#pragma once

#include <vector>

#include "server/handlers/application_of.h"

namespace valora::server {

struct Caller {
  ServedApplication* application = nullptr;  // null: none
  ServedUser* user = nullptr;                // null: nobody in particular
  int priority = 0;                          // of its requests
};

// Errors: those of application_of(); kNotFound for a model that the user may not ask, as for one
// that does not exist; kUnauthorized for a priority above what the request may have
// (docs/users.md).
Result<Caller> caller_of(const Service& service, const HttpRequest& request, const Target& target,
                         const Sharing& sharing);
// The response to an error of caller_of().
HttpResponse refuse_caller(const Error& error);

// Sets the other common properties of a caller's requests: set_sharing(), the priority, and the
// user as the tenant of requests without an application.
void set_caller(std::vector<GenerateRequest>& requests, const Sharing& sharing,
                const Caller& caller);

}  // namespace valora::server
