#include "base/log/log.h"

#include <spdlog/pattern_formatter.h>

#include "base/log/stderr_sink.h"
#include "base/text/visible_text.h"

namespace valora {
namespace {

class VisibleMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string text = visible({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<VisibleMessage>();
  }
};

}  // namespace

std::unique_ptr<spdlog::formatter> log_formatter() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<VisibleMessage>('*').set_pattern("%H:%M:%S.%e %^%l%$ %*");
  return formatter;
}

void set_up_logging(const std::string& level) {
  const auto& sink = StderrSink::of_process();
  auto logger = std::make_shared<spdlog::logger>("valora", sink);
  logger->set_formatter(log_formatter());
  // By default it prints to stderr, which may wait for a reader.
  logger->set_error_handler([&sink](const std::string&) { sink->lose_line(); });
  const auto parsed = spdlog::level::from_str(level);
  logger->set_level(parsed == spdlog::level::off && level != "off" ? spdlog::level::info : parsed);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace valora
