// What web pages of other origins may send. Browsers send forms and simple requests (fetch with
// mode "no-cors") across origins without asking the server; the page cannot read the answer, but
// the request has its effect.
#pragma once

#include <optional>

#include "server/handlers/routes.h"
#include "server/http/http.h"
#include "server/server.h"

namespace valora::server {

// True if a browser sent the request for a page of another origin that
// ServerOptions::cors_allowed_origins does not name. Programs other than browsers send none of the
// headers that say so.
bool is_cross_site(const ServerOptions& options, const HttpRequest& head);

// The answer to a request that such a page may not send: one that changes the server
// (Route::changes), or a body that is not said to be JSON, for which browsers need not ask first.
std::optional<HttpResponse> refuse_cross_site(const ServerOptions& options, const Route& route,
                                              const HttpRequest& head);

}  // namespace valora::server
