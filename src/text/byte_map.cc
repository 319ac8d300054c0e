#include "text/byte_map.h"

#include <array>

#include "base/text/unicode.h"

namespace valora::text {
namespace {

constexpr char32_t kAlphabetEnd = 0x144;

struct ByteMap {
  std::array<std::string, 256> text;
  std::array<int16_t, kAlphabetEnd> byte;
};

bool is_printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

// Printable Latin-1 bytes map to themselves, all others to U+0100 and up, in order.
ByteMap make_byte_map() {
  ByteMap map;
  map.byte.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t c = is_printable(byte) ? static_cast<char32_t>(byte) : next++;
    append_utf8(map.text[byte], c);
    map.byte[c] = static_cast<int16_t>(byte);
  }
  return map;
}

const ByteMap& byte_map() {
  static const ByteMap map = make_byte_map();
  return map;
}

}  // namespace

std::string_view byte_to_text(uint8_t byte) { return byte_map().text[byte]; }

std::optional<uint8_t> byte_of_character(char32_t code_point) {
  if (code_point >= kAlphabetEnd || byte_map().byte[code_point] < 0) return std::nullopt;
  return static_cast<uint8_t>(byte_map().byte[code_point]);
}

}  // namespace valora::text
