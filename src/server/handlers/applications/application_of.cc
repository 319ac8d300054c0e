#include "server/handlers/applications/application_of.h"

#include <fmt/format.h>

#include <utility>

#include "base/text/strings.h"
#include "server/openai/errors.h"

namespace valora::server {
namespace {

constexpr const char* kHeader = "X-Valora-Application";
constexpr const char* kMetadata = "metadata.application";

Result<ServedApplication*> named(const Applications& applications, const ServedUser* user,
                                 std::string_view name, const char* field) {
  if (user != nullptr && !user->may_name(name))
    return forbidden(fmt::format("the user `{}` may not name the application `{}`",
                                 user->settings.name, shortened(name, 60)),
                     field);
  if (ServedApplication* application = applications.find(name)) return application;
  const char* remedy = applications.empty()
                           ? "this server has none (start it with --applications FILE)"
                           : "GET /v1/applications lists those that do";
  return invalid(
      fmt::format("the application `{}` does not exist; {}", shortened(name, 60), remedy), field);
}

// The application of the target's model; null if there is none.
ServedApplication* implied(const Service& service, const Target& target) {
  const Applications& applications = service.applications;
  if (auto* application = applications.of_model(target.default_adapter)) return application;
  if (auto* application = applications.of_model(service.model_name_of(target))) return application;
  // "base:adapter" selects the adapter's application too.
  return applications.of_model(service.adapter_of(target.model));
}

}  // namespace

Error forbidden(std::string message, std::string param) {
  return {ErrorCode::kUnauthorized, std::move(message), std::move(param)};
}

Result<ServedApplication*> application_of(const Service& service, const HttpRequest& request,
                                          const ServedUser* user, const Target& target,
                                          const Sharing& sharing) {
  const Applications& applications = service.applications;
  const std::string_view header = request.header(kHeader);
  if (!header.empty()) return named(applications, user, header, kHeader);
  if (applications.empty()) return nullptr;
  if (!sharing.application.is_null()) {
    if (!sharing.application.is_string())
      return invalid("\"metadata.application\" must be the name of an application", kMetadata);
    const auto& name = sharing.application.get_ref<const std::string&>();
    if (!name.empty()) return named(applications, user, name, kMetadata);
  }
  if (applications.find(sharing.user) != nullptr)
    return named(applications, user, sharing.user, "user");
  ServedApplication* application = implied(service, target);
  if (user == nullptr || !user->settings.applications) return application;
  if (application != nullptr && user->may_name(application->settings.name)) return application;
  return applications.find(user->settings.applications->front());
}

HttpResponse refuse_application(const Error& error) {
  return error_response(400, error.message, error.param, kInvalidRequest);
}

void set_sharing(std::vector<GenerateRequest>& requests, const Sharing& sharing,
                 const ServedApplication* application) {
  for (GenerateRequest& request : requests) {
    request.cache_salt = sharing.cache_salt;
    if (!application) continue;
    request.tenant = application->settings.name;
    request.share = application->settings.share;
    request.ttft_target = application->settings.ttft;
    request.tpot_target = application->settings.tpot;
  }
}

}  // namespace valora::server
