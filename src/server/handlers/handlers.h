// The handlers of endpoints, which routes.cc lists by method and path, in the order of their
// folders.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/handlers/service.h"
#include "server/http/http.h"

namespace valora::server {

// /v1/load_lora_adapter and /v1/unload_lora_adapter, and the same with pin and unpin, which keep an
// adapter's weights in the pool.
void handle_load_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                      std::shared_ptr<Exchange> exchange);
void handle_unload_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                        std::shared_ptr<Exchange> exchange);
void handle_pin_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                     std::shared_ptr<Exchange> exchange);
void handle_unpin_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange);

// Lists the served models: /v1/models, /v1/models/{id} and /v1/lora_adapters.
inline constexpr std::string_view kModelPrefix = "/v1/models/";

void handle_models(const std::shared_ptr<Service>& service, HttpRequest request,
                   std::shared_ptr<Exchange> exchange);
void handle_model(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange);
void handle_lora_adapters(const std::shared_ptr<Service>& service, HttpRequest request,
                          std::shared_ptr<Exchange> exchange);

// /v1/upload_lora_adapter: stores an adapter sent as a form in the upload folder, then loads it.
inline constexpr std::string_view kUploadPath = "/v1/upload_lora_adapter";

// The response to an upload rejected by its header, before the body is read.
std::optional<HttpResponse> check_upload_header(const Service& service, const HttpRequest& head);
void handle_upload_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                        std::shared_ptr<Exchange> exchange);

// Lists the applications: /v1/applications.
void handle_applications(const std::shared_ptr<Service>& service, HttpRequest request,
                         std::shared_ptr<Exchange> exchange);

// OpenAI's batches: /v1/batches.
inline constexpr std::string_view kBatchesPath = "/v1/batches";

void handle_create_batch(const std::shared_ptr<Service>& service, HttpRequest request,
                         std::shared_ptr<Exchange> exchange);
void handle_batches(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange);
void handle_batch(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange);
void handle_cancel_batch(const std::shared_ptr<Service>& service, HttpRequest request,
                         std::shared_ptr<Exchange> exchange);

// OpenAI's files: /v1/files, the inputs and outputs of batches.
inline constexpr std::string_view kFilesPath = "/v1/files";

// The response to an upload that is rejected by its header, before the body is read.
std::optional<HttpResponse> check_file_header(const Service& service, const HttpRequest& head);

void handle_upload_file(const std::shared_ptr<Service>& service, HttpRequest request,
                        std::shared_ptr<Exchange> exchange);
void handle_files(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange);
void handle_file(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange);
// The whole file, or the part that a Range header names.
void handle_file_content(const std::shared_ptr<Service>& service, HttpRequest request,
                         std::shared_ptr<Exchange> exchange);
void handle_delete_file(const std::shared_ptr<Service>& service, HttpRequest request,
                        std::shared_ptr<Exchange> exchange);

// OpenAI's Responses API: /v1/responses, a thin layer over chats. Answers are not stored.
void handle_responses(const std::shared_ptr<Service>& service, HttpRequest request,
                      std::shared_ptr<Exchange> exchange);

// /openapi.json: describes the endpoints as an OpenAPI document generated from the route table.
void handle_openapi(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange);

// /classify: runs an adapter's task head on one or more inputs.
void handle_classify(const std::shared_ptr<Service>& service, HttpRequest request,
                     std::shared_ptr<Exchange> exchange);

// POST /rerank and /score: how well items fit a query. A model that its folder describes as an
// embedder compares embeddings by their cosine; any other judges each pair with "yes" or "no".
//
// Also /v1/rerank and /v2/rerank: results with the index of the document, best first.
void handle_rerank(const std::shared_ptr<Service>& service, HttpRequest request,
                   std::shared_ptr<Exchange> exchange);
// Also /v1/score: the scores of pairs, in their order.
void handle_score(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange);

// /props, by which clients of llama.cpp's server (Frigate) learn what a model can do. The query may
// name a `model`, by default the base model.
void handle_props(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange);

// /v1/stats: current activity of the server, once or as a stream of events.
void handle_stats(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange);

// /health, /ready, /ping, /metrics, /load and /version.
void handle_health(const std::shared_ptr<Service>& service, HttpRequest request,
                   std::shared_ptr<Exchange> exchange);
void handle_metrics(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange);
void handle_load(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange);
void handle_version(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange);

// /tokenize, /detokenize and /tokenizer_info.
void handle_tokenize(const std::shared_ptr<Service>& service, HttpRequest request,
                     std::shared_ptr<Exchange> exchange);
void handle_detokenize(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange);
void handle_tokenizer_info(const std::shared_ptr<Service>& service, HttpRequest request,
                           std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
