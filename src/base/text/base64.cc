#include "base/text/base64.h"

#include <algorithm>
#include <array>

namespace valora {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kPadding = 64, kSpace = 65, kForeign = 66;

constexpr std::array<uint8_t, 256> make_table() {
  std::array<uint8_t, 256> table{};
  for (auto& entry : table) entry = kForeign;
  for (size_t i = 0; i < kAlphabet.size(); ++i) table[uint8_t(kAlphabet[i])] = uint8_t(i);
  table['='] = kPadding;
  for (const char c : {' ', '\t', '\r', '\n'}) table[uint8_t(c)] = kSpace;
  return table;
}
constexpr std::array<uint8_t, 256> kTable = make_table();

}  // namespace

Result<std::vector<uint8_t>> decode_base64(std::string_view text) {
  std::vector<uint8_t> out;
  out.reserve(text.size() / 4 * 3 + 3);
  uint32_t group = 0;
  int sextets = 0;  // in the current group
  int padding = 0;
  for (const char c : text) {
    const uint8_t value = kTable[uint8_t(c)];
    if (value == kSpace) continue;
    if (value == kForeign) return invalid("the base64 data has a character outside its alphabet");
    if (value == kPadding) {
      ++padding;
      continue;
    }
    if (padding != 0) return invalid("the base64 data continues after its padding");
    group = group << 6 | value;
    if (++sextets == 4) {
      out.push_back(uint8_t(group >> 16));
      out.push_back(uint8_t(group >> 8));
      out.push_back(uint8_t(group));
      group = 0;
      sextets = 0;
    }
  }
  // Padding may be missing, but must not be wrong.
  const bool wrong_padding = padding != 0 && (sextets == 0 || sextets + padding != 4);
  if (sextets == 1 || wrong_padding) return invalid("the base64 data is truncated");
  if (sextets >= 2) out.push_back(uint8_t(group >> (sextets == 2 ? 4 : 10)));
  if (sextets == 3) out.push_back(uint8_t(group >> 2));
  return out;
}

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t left = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < left ? uint8_t(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) text += k <= left ? kAlphabet[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace valora
