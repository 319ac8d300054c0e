#include "hub/client/refusals.h"

#include <fmt/format.h>

namespace valora::hub {
namespace {

std::string host_of(const HubSettings& settings) {
  return shown_url(settings.endpoint.substr(settings.endpoint.find("//") + 2));
}

Error gated(const HubName& name, const HubSettings& settings) {
  const std::string page = settings.endpoint + "/" + name.id();
  if (settings.token.empty())
    return {ErrorCode::kUnauthorized,
            fmt::format("{} is gated: accept its terms at {} and set HF_TOKEN to a token of that "
                        "account",
                        name.id(), page),
            {}};
  return {ErrorCode::kUnauthorized,
          fmt::format("{} is gated, and the account of the token of {} may not load it: ask for "
                      "access at {}",
                      name.id(), settings.token_source, page),
          {}};
}

Error unknown(const HubName& name, const HubSettings& settings) {
  return not_found(
      fmt::format("{} is no folder here, and {} has no model or adapter of this name{}", name.id(),
                  host_of(settings),
                  settings.token.empty()
                      ? "; if it is private, set HF_TOKEN"
                      : fmt::format(" that the token of {} may read", settings.token_source)));
}

bool refuses_token(const Reply& reply) {
  return reply.header("x-error-message").starts_with("Invalid ");
}

}  // namespace

Error refusal(const Reply& reply, const HubName& name, const std::string& file,
              const HubSettings& settings) {
  const std::string code = reply.header("x-error-code");
  const bool refused = reply.status == 401 || reply.status == 403;
  const std::string what = file.empty() ? name.id() : file + " of " + name.id();
  if (code == "GatedRepo") return gated(name, settings);
  if (code == "RevisionNotFound")
    return not_found(fmt::format("{} has no revision {}", name.id(), name.revision_or_main()));
  if (code == "EntryNotFound")
    return not_found(fmt::format("{} has no file {} any more", name.id(), file));
  if (reply.status == 401 && !settings.token.empty() && refuses_token(reply))
    return {ErrorCode::kUnauthorized,
            fmt::format("{} refuses the token of {}: renew or remove it", host_of(settings),
                        settings.token_source),
            {}};
  if (code == "RepoNotFound" || reply.status == 401 || reply.status == 404)
    return unknown(name, settings);
  if (reply.status == 429)
    return {ErrorCode::kUnavailable,
            fmt::format("{} asks to load {} later (429){}", host_of(settings), what,
                        settings.token.empty() ? "; with HF_TOKEN its limits are higher" : ""),
            {}};
  if (refused || reply.status == 451)
    return {ErrorCode::kUnauthorized,
            fmt::format("{} forbids loading {} ({})", host_of(settings), what, reply.status),
            {}};
  return {ErrorCode::kUnavailable,
          fmt::format("{} cannot be loaded from {}: {}", what, host_of(settings), reason_of(reply)),
          {}};
}

}  // namespace valora::hub
