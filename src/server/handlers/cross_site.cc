#include "server/handlers/cross_site.h"

#include <algorithm>

#include "server/openai/errors.h"

namespace valora::server {
namespace {

bool is_named(const ServerOptions& options, std::string_view origin) {
  return std::ranges::any_of(options.cors_allowed_origins, [&](const std::string& allowed) {
    return allowed == "*" || (!origin.empty() && allowed == origin);
  });
}

// The origin has the host that the browser asked, which a proxy may have replaced. A page of
// another origin cannot set X-Forwarded-Host without asking first.
bool is_own(std::string_view origin, const HttpRequest& head) {
  const size_t scheme = origin.find("://");
  if (scheme == origin.npos) return false;  // "null"
  const std::string_view host = origin.substr(scheme + 3);
  const std::string_view asked = head.header("x-forwarded-host");  // of the first proxy, in a list
  return same_header_name(host, head.header("host")) ||
         same_header_name(host, asked.substr(0, asked.find(',')));
}

}  // namespace

bool is_cross_site(const ServerOptions& options, const HttpRequest& head) {
  const std::string_view origin = head.header("origin");
  if (is_named(options, origin)) return false;
  // Browsers tell it to servers on this machine and to those with TLS.
  if (const std::string_view site = head.header("sec-fetch-site"); !site.empty())
    return site != "same-origin" && site != "none";
  return !origin.empty() && !is_own(origin, head);
}

std::optional<HttpResponse> refuse_cross_site(const ServerOptions& options, const Route& route,
                                              const HttpRequest& head) {
  if (route.method == "GET" || route.open || !is_cross_site(options, head)) return std::nullopt;
  if (route.changes)
    return error_response(
        403,
        "pages of other origins cannot change adapters, files, batches or streams; "
        "--allowed-origins names those that may");
  if (head.header("content-type").empty())
    return error_response(415,
                          "pages of other origins must send the content type application/json");
  return std::nullopt;
}

}  // namespace valora::server
