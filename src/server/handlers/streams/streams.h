// /v1/streams: live streams, their frames and events (docs/streams.md).
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "server/handlers/service.h"

namespace valora::server {

inline constexpr std::string_view kStreamsPath = "/v1/streams";

void handle_create_stream(const std::shared_ptr<Service>& service, HttpRequest request,
                          std::shared_ptr<Exchange> exchange);
void handle_streams(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange);
void handle_stream(const std::shared_ptr<Service>& service, HttpRequest request,
                   std::shared_ptr<Exchange> exchange);
void handle_delete_stream(const std::shared_ptr<Service>& service, HttpRequest request,
                          std::shared_ptr<Exchange> exchange);
void handle_pause_stream(const std::shared_ptr<Service>& service, HttpRequest request,
                         std::shared_ptr<Exchange> exchange);
void handle_resume_stream(const std::shared_ptr<Service>& service, HttpRequest request,
                          std::shared_ptr<Exchange> exchange);
// The body is an encoded picture, which the content type must say.
std::optional<HttpResponse> check_frame_header(const Service& service, const HttpRequest& head);
void handle_push_frame(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange);
// "/frames/{frame_id}", or "/frames/latest".
void handle_frame(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange);
// A list, or server-sent events if the request accepts them.
void handle_stream_events(const std::shared_ptr<Service>& service, HttpRequest request,
                          std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
