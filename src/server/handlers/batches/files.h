// OpenAI's files: /v1/files, the inputs and outputs of batches.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/handlers/service.h"

namespace valora::server {

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

}  // namespace valora::server
