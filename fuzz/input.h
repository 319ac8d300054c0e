// Splits one fuzz input into parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace valora::fuzz {

class Input {
 public:
  // The line that separates two parts.
  static constexpr std::string_view kSeparator = "\n%%%%\n";

  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  // The bytes up to the next separator, or the rest if there is none.
  std::string_view part() {
    const size_t end = rest_.find(kSeparator);
    const std::string_view part = rest_.substr(0, end);
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + kSeparator.size());
    return part;
  }

  // The next byte; 0 at the end of the input.
  uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  uint16_t word() {
    const uint16_t low = byte();
    return static_cast<uint16_t>(low | byte() << 8);
  }

  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace valora::fuzz
