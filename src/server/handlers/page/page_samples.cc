#include "server/handlers/page/page_samples.h"

#include <fmt/format.h>

#include <charconv>

#include "server/openai/errors.h"
#include "server/openai/json_text.h"

namespace valora::server {
namespace {

// Users see the samples of the models that they may use.
bool may_try(const Service& service, const HttpRequest& request, const Sample& sample) {
  const ServedUser* user = service.user_of(request);
  return user == nullptr ||
         user->may_ask(sample.model.empty() ? service.base_name() : sample.model);
}

const Sample* sample_at(const Service& service, std::string_view number) {
  size_t at = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), at);
  const bool whole = error == std::errc() && end == number.data() + number.size();
  const std::vector<Sample>& samples = service.options.samples;
  return whole && at < samples.size() ? &samples[at] : nullptr;
}

}  // namespace

void handle_samples(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange) {
  OrderedJson data = OrderedJson::array();
  const std::vector<Sample>& samples = service->options.samples;
  for (size_t at = 0; at < samples.size(); ++at) {
    const Sample& sample = samples[at];
    if (!may_try(*service, request, sample)) continue;
    data.push_back({{"model", sample.model.empty() ? service->base_name() : sample.model},
                    {"question", sample.question},
                    {"name", sample.name},
                    {"type", sample.content_type},
                    {"bytes", sample.bytes->size()},
                    {"path", fmt::format("{}{}", kSamplePrefix, at)}});
  }
  OrderedJson out = OrderedJson::object();
  out["data"] = std::move(data);
  exchange->respond({.body = to_text(out)});
}

void handle_sample(const std::shared_ptr<Service>& service, HttpRequest request,
                   std::shared_ptr<Exchange> exchange) {
  const Sample* sample =
      sample_at(*service, std::string_view(request.path).substr(kSamplePrefix.size()));
  if (!sample || !may_try(*service, request, *sample))
    return exchange->respond(
        error_response(404, fmt::format("the path {} does not exist", request.path)));
  exchange->respond(
      {.content_type = sample->content_type,
       .body = *sample->bytes,
       .headers = {{"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-cache"}}});
}

}  // namespace valora::server
