#include "server/handlers/caller.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

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

// The client did not name the default adapter and need not learn its name.
Error refusal(const Service& service, const Target& target) {
  if (target.default_adapter.empty()) return model_not_found(service.model_name_of(target));
  return not_found(
      "conversations with such media are answered by an adapter that this API key may not use; "
      "name one that it may use",
      "model");
}

// The highest priority (smallest number) that the caller's requests may have. by_default: the
// priority of requests that send none.
int highest_priority(const Service& service, const Caller& caller, int by_default) {
  if (caller.user != nullptr && caller.user->settings.priority)
    return *caller.user->settings.priority;
  if (service.options.allow_any_priority) return INT_MIN;
  if (service.users.empty()) return service.applications.empty() ? INT_MIN : by_default;
  return caller.user == nullptr ? INT_MIN : by_default;  // with users, --api-key has all rights
}

// Rows of batches keep their order among one another.
int behind_live_requests(int priority) {
  constexpr int64_t kBehind = int64_t{1} << 30;
  return static_cast<int>(std::min<int64_t>(INT_MAX, priority + kBehind));
}

Result<int> priority_of(const Service& service, const Caller& caller, const Sharing& sharing) {
  const int by_default = caller.application ? caller.application->settings.priority : 0;
  const int highest = highest_priority(service, caller, by_default);
  const int asked = sharing.priority.value_or(std::max(by_default, highest));
  if (asked >= highest) return asked;
  return forbidden(fmt::format("\"priority\" {} is above {}, the highest that this request may "
                               "have; send that or a larger number, or leave it out",
                               asked, highest),
                   "priority");
}

}  // namespace

Result<Caller> caller_of(const Service& service, const HttpRequest& request, const Target& target,
                         const Sharing& sharing) {
  Caller caller;
  caller.user = service.user_of(request);
  if (caller.user != nullptr && !may_ask(service, *caller.user, target))
    return refusal(service, target);
  VALORA_TRY(application, application_of(service, request, caller.user, target, sharing));
  caller.application = application;
  VALORA_TRY(priority, priority_of(service, caller, sharing));
  caller.background = request.background;
  caller.priority = request.background ? behind_live_requests(priority) : priority;
  return caller;
}

HttpResponse refuse_caller(const Error& error) {
  if (error.code == ErrorCode::kUnauthorized)  // the key is valid but lacks the right
    return error_response(403, error.message, error.param);
  return error.code == ErrorCode::kNotFound ? error_response(error) : refuse_application(error);
}

void set_caller(std::vector<GenerateRequest>& requests, const Sharing& sharing,
                const Caller& caller) {
  set_sharing(requests, sharing, caller.application);
  for (GenerateRequest& request : requests) request.priority = caller.priority;
  if (caller.background)  // nobody waits for it: its targets are those of no one
    for (GenerateRequest& request : requests)
      request.ttft_target = request.tpot_target = std::nullopt;
  if (caller.application != nullptr || caller.user == nullptr) return;
  for (GenerateRequest& request : requests) {
    request.tenant = "user " + caller.user->settings.name;
    request.share = caller.user->settings.share;
  }
}

}  // namespace valora::server
