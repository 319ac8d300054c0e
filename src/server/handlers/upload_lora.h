// An adapter that a client sends as a form: kept in the folder for uploads, then loaded.
#pragma once

#include <memory>
#include <optional>

#include "server/handlers/service.h"

namespace valora::server {

inline constexpr std::string_view kUploadPath = "/v1/upload_lora_adapter";

// The answer to a request that is refused by its header, before its body is read.
std::optional<HttpResponse> screen_upload(const Service& service, const HttpRequest& head);
void handle_upload_lora(const std::shared_ptr<Service>& service, HttpRequest request,
                        std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
