#include "server/handlers/application_of.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "server/openai/errors.h"

namespace valora::server {
namespace {

constexpr const char* kHeader = "X-Valora-Application";
constexpr const char* kMetadata = "metadata.application";

Result<ServedApplication*> named(const Applications& applications, std::string_view name,
                                 const char* field) {
  if (ServedApplication* application = applications.find(name)) return application;
  const char* remedy = applications.empty()
                           ? "this server has none (start it with --applications FILE)"
                           : "GET /v1/applications lists those that do";
  return invalid(
      fmt::format("the application `{}` does not exist; {}", shortened(name, 60), remedy), field);
}

}  // namespace

Result<ServedApplication*> application_of(const Service& service, const HttpRequest& request,
                                          const Target& target, const Sharing& sharing) {
  const Applications& applications = service.applications;
  const std::string_view header = request.header(kHeader);
  if (!header.empty()) return named(applications, header, kHeader);
  if (applications.empty()) return nullptr;
  if (!sharing.application.is_null()) {
    if (!sharing.application.is_string())
      return invalid("\"metadata.application\" must be the name of an application", kMetadata);
    const auto& name = sharing.application.get_ref<const std::string&>();
    if (!name.empty()) return named(applications, name, kMetadata);
  }
  if (ServedApplication* application = applications.find(sharing.user)) return application;
  if (auto* application = applications.of_model(target.default_adapter)) return application;
  if (auto* application = applications.of_model(service.model_name_of(target))) return application;
  // "base:adapter" asks for the adapter, too.
  return applications.of_model(service.adapter_of(target.model));
}

HttpResponse refuse_application(const Error& error) {
  return error_response(400, error.message, error.param, kInvalidRequest);
}

void set_sharing(std::vector<GenerateRequest>& requests, const Sharing& sharing,
                 const ServedApplication* application) {
  for (GenerateRequest& request : requests) {
    request.cache_salt = sharing.cache_salt;
    request.priority = sharing.priority.value_or(application ? application->settings.priority : 0);
    if (!application) continue;
    request.tenant = application->settings.name;
    request.share = application->settings.share;
    request.ttft_target = application->settings.ttft;
    request.tpot_target = application->settings.tpot;
  }
}

}  // namespace valora::server
