#include "server/handlers/handlers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>

#include "base/json/parse_ordered.h"
#include "base/text/strings.h"
#include "base/text/visible_text.h"
#include "server/batches/batch_runner.h"
#include "server/handlers/batches/batch_access.h"
#include "server/openai/json_text.h"

namespace valora::server {
namespace {

constexpr ListLimits kBatchLists{20, 100};
constexpr size_t kMostMetadata = 16, kMostMetadataKey = 64, kMostMetadataValue = 512;

Result<OrderedJson> read_metadata(const Json& body) {
  const auto found = body.find("metadata");
  if (found == body.end() || found->is_null()) return OrderedJson();
  if (!found->is_object() || found->size() > kMostMetadata)
    return invalid(fmt::format("\"metadata\" must be an object of at most {} texts", kMostMetadata),
                   "metadata");
  OrderedJson metadata = OrderedJson::object();
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string() || key.size() > kMostMetadataKey ||
        value.get_ref<const std::string&>().size() > kMostMetadataValue)
      return invalid(
          fmt::format(
              "\"metadata.{}\" must be a text of at most {} bytes, with a key of at most {}",
              shortened(visible(key), 60), kMostMetadataValue, kMostMetadataKey),
          "metadata");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

Result<BatchRecord> read_batch(const Json& body) {
  if (!body.is_object()) return invalid("the body must be a JSON object");
  if (const auto expiry = body.find("output_expires_after");
      expiry != body.end() && !expiry->is_null())
    return not_implemented(
        "\"output_expires_after\" is not supported: files are kept until they are deleted",
        "output_expires_after");
  BatchRecord batch;
  VALORA_TRY(input, required_field<std::string>(body, "input_file_id"));
  VALORA_TRY(endpoint, required_field<std::string>(body, "endpoint"));
  VALORA_TRY(window, field_or<std::string>(body, "completion_window", "24h"));
  VALORA_TRY(seconds, window_seconds(window));
  VALORA_TRY(metadata, read_metadata(body));
  if (!is_batch_endpoint(endpoint))
    return invalid(
        fmt::format("\"endpoint\" is {}; batches may ask {}", shortened(visible(endpoint), 60),
                    fmt::join(batch_endpoints(), ", ")),
        "endpoint");
  batch.input_file_id = std::move(input);
  batch.endpoint = std::move(endpoint);
  batch.completion_window = std::move(window);
  batch.metadata = std::move(metadata);
  batch.created_at = std::time(nullptr);
  batch.expires_at = batch.created_at + seconds;
  return batch;
}

Status check_input_file(const Service& service, const HttpRequest& request,
                        const BatchRecord& batch) {
  const auto file = service.batches->store().file(batch.input_file_id);
  if (!file || !sees_records_of(service, request, file->owner))
    return not_found(
        fmt::format("No such File object: {}", shortened(visible(batch.input_file_id), 60)),
        "input_file_id");
  if (file->purpose != "batch")
    return invalid(fmt::format("the file {} has the purpose {}, and inputs have batch", file->id,
                               file->purpose),
                   "input_file_id");
  return {};
}

std::optional<BatchRecord> visible_batch(const Service& service, const HttpRequest& request) {
  auto batch = service.batches->store().batch(id_in_path(request.path, kBatchesPath));
  if (batch && !sees_records_of(service, request, batch->owner)) batch.reset();
  return batch;
}

HttpResponse no_such_batch(const HttpRequest& request) {
  return error_response(404,
                        fmt::format("No batch found with id '{}'.",
                                    shortened(visible(id_in_path(request.path, kBatchesPath)), 60)),
                        "id");
}

}  // namespace

void handle_create_batch(const std::shared_ptr<Service>& service, HttpRequest request,
                         std::shared_ptr<Exchange> exchange) {
  const auto body = parse_json(request.body, "the body", {.max_bytes = size_t{1} << 20});
  if (!body.ok()) return exchange->respond(error_response(body.error()));
  auto batch = read_batch(*body);
  if (!batch.ok()) return exchange->respond(error_response(batch.error()));
  if (const Status found = check_input_file(*service, request, *batch); !found.ok())
    return exchange->respond(error_response(found.error()));
  batch->owner = owner_of(*service, request);
  const auto added = service->batches->store().add_batch(std::move(*batch));
  if (!added.ok() && added.error().code == ErrorCode::kUnavailable)
    return exchange->respond(error_response(507, added.error().message));
  if (!added.ok()) return exchange->respond(error_response(added.error(), 60));
  service->batches->begin(*added);
  exchange->respond({.body = to_text(batch_json(*added))});
}

void handle_batches(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange) {
  respond_page(*service, request, *exchange, service->batches->store().batches(), kBatchLists,
               batch_json);
}

void handle_batch(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange) {
  const auto batch = visible_batch(*service, request);
  if (!batch) return exchange->respond(no_such_batch(request));
  exchange->respond({.body = to_text(batch_json(*batch))});
}

void handle_cancel_batch(const std::shared_ptr<Service>& service, HttpRequest request,
                         std::shared_ptr<Exchange> exchange) {
  const auto batch = visible_batch(*service, request);
  if (!batch) return exchange->respond(no_such_batch(request));
  const auto cancelled = service->batches->cancel(batch->id);
  if (!cancelled.ok() && cancelled.error().code == ErrorCode::kUnavailable)
    return exchange->respond(error_response(507, cancelled.error().message));
  if (!cancelled.ok()) return exchange->respond(error_response(cancelled.error()));
  exchange->respond({.body = to_text(batch_json(*cancelled))});
}

}  // namespace valora::server
