// Where the log goes: stderr, a line per message; and writes that wait for no reader.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace valora {

// In colour on terminals. Errors of writes lose lines and nothing else.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit StderrSink(int descriptor);
  // That of this process.
  static const std::shared_ptr<StderrSink>& of_process();

  // From now on a line that its reader does not take at once is lost, instead of waiting: a server
  // must not stand still because nobody reads its log. When lines can be written again, the first
  // one tells how many were lost.
  void wait_for_nobody() { waits_ = false; }
  uint64_t lost() const { return lost_; }  // lines
  // Counts a line that could not be formatted.
  void lose_line() { ++lost_; }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  std::string text_of(const spdlog::details::log_msg& message);
  bool write(std::string_view text);

  const int descriptor_;
  const bool colours_;
  std::atomic<bool> waits_ = true;
  std::atomic<uint64_t> lost_ = 0;
  uint64_t told_ = 0;    // of the lost lines
  bool broken_ = false;  // a part of a line was written last
};

// Writes to a descriptor what its reader takes at once; returns the number of bytes written. Waits
// neither for a full pipe nor for a stopped terminal, and does not need O_NONBLOCK, which other
// processes with the same output would share. A broken pipe is an error like any other if SIGPIPE
// is ignored.
size_t write_now(int descriptor, std::string_view text);

}  // namespace valora
