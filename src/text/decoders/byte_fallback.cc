#include "text/decoders/byte_fallback.h"

#include <charconv>
#include <optional>

#include "base/text/unicode.h"
#include "text/json_fields.h"

namespace valora::text {
namespace {

// Parses "<0xHH>". The reference's number parser also accepts a plus sign and one digit.
std::optional<char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  const std::string_view digits = token.substr(token[3] == '+' ? 4 : 3, token[3] == '+' ? 1 : 2);
  uint8_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return static_cast<char>(value);
}

// state.held is the current run of bytes, of which the first state.seen bytes are whole characters.
// Once a run is known to be invalid UTF-8, its text is final. Until it ends, the next byte may make
// all of it invalid.
class ByteFallbackDecoder final : public DecoderPart {
 public:
  void push(DecoderState& state, std::string piece, DecodedPieces& out) const override {
    if (const auto byte = byte_of_token(piece)) return push_byte(state, *byte, out);
    finish(state, out);
    out.push_back(std::move(piece));
  }

  void finish(DecoderState& state, DecodedPieces& out) const override {
    if (state.seen < state.held.size())
      replace_held(state, out);
    else if (!state.held.empty())
      out.push_back(std::move(state.held));
    state = {};
  }

  bool holds_whole_text(const DecoderState& state) const override {
    return state.seen == state.held.size();
  }

  std::string bytes(std::string_view token) const override {
    const auto byte = byte_of_token(token);
    return byte ? std::string(1, *byte) : std::string(token);
  }

 private:
  static void push_byte(DecoderState& state, char byte, DecodedPieces& out) {
    state.held += byte;
    if (state.settled) return replace_held(state, out);
    const Utf8Step step = decode_utf8(std::string_view(state.held).substr(state.seen));
    if (step.status == Utf8Status::kValid) state.seen = state.held.size();
    if (step.status != Utf8Status::kInvalid) return;
    state.settled = true;
    replace_held(state, out);
  }

  static void replace_held(DecoderState& state, DecodedPieces& out) {
    out.insert(out.end(), state.held.size(), std::string(kReplacement));
    state.held.clear();
    state.seen = 0;
  }
};

}  // namespace

Result<std::unique_ptr<const DecoderPart>> make_byte_fallback_decoder(const Json& json,
                                                                      const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type"}));
  return std::unique_ptr<const DecoderPart>(new ByteFallbackDecoder);
}

}  // namespace valora::text
