// /v1/upload_lora_adapter: stores an adapter sent as a form in the upload folder, then loads it.
#pragma once

#include <memory>
#include <optional>

#include "server/handlers/service.h"

namespace valora::server {

inline constexpr std::string_view kUploadPath = "/v1/upload_lora_adapter";

// The response to an upload rejected by its header, before the body is read.
std::optional<HttpResponse> check_upload_header(const Service& service, const HttpRequest& head);
void handle_upload_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                        std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
