// Finds a request's application and applies the settings that follow from it.
#pragma once

#include <vector>

#include "api/request.h"
#include "server/handlers/service.h"
#include "server/http/http.h"
#include "server/openai/requests.h"

namespace valora::server {

// The application is chosen by the header X-Valora-Application, else by "metadata.application",
// else by "user" if that names an application, else by the default adapter or the requested model.
// Returns null if none applies. On a server without applications only the header is looked at. A
// user with a list of applications may name only those; others that are merely implied are skipped,
// and the first in the list is the default. Errors: kInvalidArgument if the header or the metadata
// names no known application, kUnauthorized if the user may not use it.
Result<ServedApplication*> application_of(const Service& service, const HttpRequest& request,
                                          const ServedUser* user, const Target& target,
                                          const Sharing& sharing);
// The error for a caller whose key does not permit the request; answered with 403.
Error forbidden(std::string message, std::string param);
// The response to a kInvalidArgument error of application_of().
HttpResponse refuse_application(const Error& error);

// Sets the cache salt, the tenant with its share, and the latency targets. `application` may be
// null.
void set_sharing(std::vector<GenerateRequest>& requests, const Sharing& sharing,
                 const ServedApplication* application);

}  // namespace valora::server
