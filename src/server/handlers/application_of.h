// Finds the application of a request, and the settings that follow from it.
#pragma once

#include <vector>

#include "api/request.h"
#include "server/handlers/service.h"
#include "server/http/http.h"
#include "server/openai/requests.h"

namespace valora::server {

// Named by the header X-Valora-Application, else by "metadata.application", else by "user" if that
// is an application's name, else the one to which the default adapter or the requested model
// belongs. Null: none. Of a server without applications, only the header is looked at. A user with
// applications of its own may name only these: what others imply is passed over, and the first is
// the default. Errors: kInvalidArgument for a header or metadata that name no application,
// kUnauthorized for one that is not the user's.
Result<ServedApplication*> application_of(const Service& service, const HttpRequest& request,
                                          const ServedUser* user, const Target& target,
                                          const Sharing& sharing);
// The error for a caller whose key does not allow the request; answered with 403.
Error forbidden(std::string message, std::string param);
// The response to kInvalidArgument of application_of().
HttpResponse refuse_application(const Error& error);

// Sets the cache salt, the tenant with its share, and the latency targets. `application` may be
// null.
void set_sharing(std::vector<GenerateRequest>& requests, const Sharing& sharing,
                 const ServedApplication* application);

}  // namespace valora::server
