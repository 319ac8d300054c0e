#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

namespace valora {

void set_up_logging(const std::string& level) {
  auto logger = spdlog::stderr_color_mt("valora");
  logger->set_pattern("%H:%M:%S.%e %^%l%$ %v");
  const auto parsed = spdlog::level::from_str(level);
  logger->set_level(parsed == spdlog::level::off && level != "off" ? spdlog::level::info : parsed);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace valora
