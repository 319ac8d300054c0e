// The page's samples: their list at "/ui/samples" and their files below it.
#pragma once

#include <memory>
#include <string_view>

#include "server/handlers/service.h"

namespace valora::server {

inline constexpr std::string_view kSamplePrefix = "/ui/samples/";

void handle_samples(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange);
void handle_sample(const std::shared_ptr<Service>& service, HttpRequest request,
                   std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
