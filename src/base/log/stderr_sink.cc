#include "base/log/stderr_sink.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/details/os.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace valora {
namespace {

constexpr std::string_view kPlain = "\033[m";

std::string_view colour_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace: return "\033[37m";
    case spdlog::level::debug: return "\033[36m";
    case spdlog::level::info: return "\033[32m";
    case spdlog::level::warn: return "\033[33m\033[1m";
    case spdlog::level::err: return "\033[31m\033[1m";
    default: return kPlain;
  }
}

size_t write_waiting(int descriptor, std::string_view text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    done += static_cast<size_t>(written);
  }
  return done;
}

}  // namespace

StderrSink::StderrSink(int descriptor)
    : descriptor_(descriptor),
      colours_(::isatty(descriptor) == 1 && spdlog::details::os::is_color_terminal()) {}

const std::shared_ptr<StderrSink>& StderrSink::of_process() {
  static const auto sink = std::make_shared<StderrSink>(STDERR_FILENO);
  return sink;
}

std::string StderrSink::text_of(const spdlog::details::log_msg& message) {
  message.color_range_start = message.color_range_end = 0;
  spdlog::memory_buf_t text;
  formatter_->format(message, text);
  std::string line(text.data(), text.size());
  if (!colours_ || message.color_range_end <= message.color_range_start) return line;
  line.insert(message.color_range_end, kPlain);
  line.insert(message.color_range_start, colour_of(message.level));
  return line;
}

bool StderrSink::write(std::string_view text) {
  const size_t written = waits_ ? write_waiting(descriptor_, text) : write_now(descriptor_, text);
  if (written > 0) broken_ = text[written - 1] != '\n';
  return written == text.size();
}

void StderrSink::sink_it_(const spdlog::details::log_msg& message) {
  std::string text = broken_ ? "\n" : "";
  const uint64_t lost = lost_;
  if (lost > told_) {
    const std::string note =
        fmt::format("{} lines of the log were lost: nothing took them", lost - told_);
    text += text_of({message.logger_name, spdlog::level::warn, note});
  }
  text += text_of(message);
  if (write(text))
    told_ = lost;
  else
    ++lost_;
}

size_t write_now(int descriptor, std::string_view text) {
  size_t done = 0;
  while (done < text.size()) {
    pollfd ready{descriptor, POLLOUT, 0};
    const int polled = ::poll(&ready, 1, 0);
    if (polled < 0 && errno == EINTR) continue;
    if (polled < 1) break;
    // A pipe that is ready has room for this many bytes.
    const size_t together = std::min<size_t>(text.size() - done, PIPE_BUF);
    const ssize_t written = ::write(descriptor, text.data() + done, together);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    done += static_cast<size_t>(written);
  }
  return done;
}

}  // namespace valora
