#include "text/decoders/byte_level.h"

#include "base/text/unicode.h"
#include "text/byte_map.h"
#include "text/json_fields.h"

namespace valora::text {
namespace {

class ByteLevelDecoder final : public DecoderPart {
 public:
  // Holds back the bytes of incomplete characters.
  void push(DecoderState& state, std::string piece, DecodedPieces& out) const override {
    state.held += bytes(piece);
    std::string text;
    std::string_view rest = state.held;
    while (!rest.empty()) {
      const Utf8Step step = decode_utf8(rest);
      if (step.status == Utf8Status::kIncomplete) break;
      text += step.status == Utf8Status::kValid ? rest.substr(0, step.length) : kReplacement;
      rest.remove_prefix(step.length);
    }
    state.held.erase(0, state.held.size() - rest.size());
    if (!text.empty()) out.push_back(std::move(text));
  }

  void finish(DecoderState& state, DecodedPieces& out) const override {
    if (!state.held.empty()) out.emplace_back(kReplacement);
    state.held.clear();
  }

  std::string bytes(std::string_view token) const override {
    std::string out;
    out.reserve(token.size());
    for (std::string_view rest = token; !rest.empty();) {
      const Utf8Step step = decode_utf8(rest);
      const auto byte = byte_of_character(step.code_point);
      if (!byte) return std::string(token);
      out += static_cast<char>(*byte);
      rest.remove_prefix(step.length);
    }
    return out;
  }

  bool fuses() const override { return true; }
};

}  // namespace

Result<std::unique_ptr<const DecoderPart>> make_byte_level_decoder(const Json& json,
                                                                   const std::string& where) {
  VALORA_CHECK(
      check_fields(json, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  return std::unique_ptr<const DecoderPart>(new ByteLevelDecoder);
}

}  // namespace valora::text
