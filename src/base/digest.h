// 128-bit content digests (XXH3): the identity of adapters, media and KV blocks. Equal digests
// count as equal content everywhere, so every input that changes a result must be part of its
// digest.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace valora {

struct Digest {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const Digest&) const = default;
  std::string hex() const;
};

Digest digest_of(std::span<const uint8_t> bytes);
Digest digest_of(std::string_view text);

// Builds one digest from several pieces. Each piece is length-prefixed, so that {"ab","c"} differs
// from {"a","bc"}.
class DigestBuilder {
 public:
  DigestBuilder();
  ~DigestBuilder();
  DigestBuilder(const DigestBuilder&) = delete;
  DigestBuilder& operator=(const DigestBuilder&) = delete;

  DigestBuilder& add(std::span<const uint8_t> bytes);
  DigestBuilder& add(std::string_view text);
  DigestBuilder& add(const Digest& digest);
  template <typename T>
    requires std::is_arithmetic_v<T>
  DigestBuilder& add(T value) {
    return add(std::span(reinterpret_cast<const uint8_t*>(&value), sizeof value));
  }
  template <typename T>
    requires std::is_arithmetic_v<T>
  DigestBuilder& add(std::span<const T> values) {
    return add(std::span(reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()));
  }
  Digest finish() const;

 private:
  void* state_;
};

}  // namespace valora

template <>
struct std::hash<valora::Digest> {
  size_t operator()(const valora::Digest& d) const noexcept {
    return d.low ^ (d.high * 0x9E3779B97F4A7C15ull);
  }
};
