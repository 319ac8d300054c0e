// The page at "/" and "/docs", and its files below "/ui/".
#pragma once

#include <memory>
#include <string_view>

#include "server/handlers/service.h"

namespace valora::server {

inline constexpr std::string_view kPagePrefix = "/ui/";

void handle_page(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange);

}  // namespace valora::server
