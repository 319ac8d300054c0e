#include "server/handlers/caller.h"

#include "server/openai/errors.h"

namespace valora::server {
namespace {

bool may_ask(const Service& service, const ServedUser& user, const Target& target) {
  const std::vector<AdapterUse> uses = service.adapters_of(target);
  if (uses.empty()) return user.may_ask(service.base_name());
  for (const AdapterUse& use : uses)
    if (!user.may_ask(use.name)) return false;
  return true;
}

// The client did not name a default adapter, and need not learn its name.
Error refusal(const Service& service, const Target& target) {
  if (target.default_adapter.empty()) return model_not_found(service.model_name_of(target));
  return not_found(
      "an adapter that this API key may not ask answers conversations with such media; name one "
      "that it may",
      "model");
}

}  // namespace

Result<Caller> caller_of(const Service& service, const HttpRequest& request, const Target& target,
                         const Sharing& sharing) {
  Caller caller;
  caller.user = service.user_of(request);
  if (caller.user != nullptr && !may_ask(service, *caller.user, target))
    return refusal(service, target);
  VALORA_TRY(application, application_of(service, request, target, sharing));
  caller.application = application;
  return caller;
}

HttpResponse refuse_caller(const Error& error) {
  return error.code == ErrorCode::kNotFound ? error_response(error) : refuse_application(error);
}

void set_caller(std::vector<GenerateRequest>& requests, const Sharing& sharing,
                const Caller& caller) {
  set_sharing(requests, sharing, caller.application);
  if (caller.application != nullptr || caller.user == nullptr) return;
  for (GenerateRequest& request : requests) {
    request.tenant = "user " + caller.user->settings.name;
    request.share = caller.user->settings.share;
  }
}

}  // namespace valora::server
