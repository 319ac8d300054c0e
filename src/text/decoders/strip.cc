#include "text/decoders/strip.h"

#include <algorithm>

#include "text/json_fields.h"

namespace valora::text {
namespace {

class StripDecoder final : public DecoderPart {
 public:
  StripDecoder(std::string character, size_t count, bool fused)
      : character_(std::move(character)), count_(count), fused_(fused) {}

  void push(DecoderState& state, std::string piece, DecodedPieces& out) const override {
    if (!fused_) return out.push_back(bytes(piece));
    if (!state.settled) {
      const size_t cut = leading(piece, count_ - state.seen);
      state.seen += cut;
      piece.erase(0, cut * character_.size());
      state.settled = !piece.empty() || state.seen == count_;
    }
    if (!piece.empty()) out.push_back(std::move(piece));
  }

  std::string bytes(std::string_view token) const override {
    if (!fused_) token.remove_prefix(leading(token, count_) * character_.size());
    return std::string(token);
  }

 private:
  size_t leading(std::string_view text, size_t at_most) const {
    size_t count = 0;
    for (; count < at_most && text.starts_with(character_); ++count)
      text.remove_prefix(character_.size());
    return count;
  }

  std::string character_;
  size_t count_;
  bool fused_;
};

}  // namespace

Result<std::unique_ptr<const DecoderPart>> make_strip_decoder(const Json& json,
                                                              const std::string& where,
                                                              bool fused) {
  VALORA_CHECK(check_fields(json, where, {"type", "content", "start", "stop"}));
  VALORA_TRY(character, character_field(json, where, "content"));
  VALORA_TRY(start, field<int64_t>(json, where, "start"));
  VALORA_TRY(stop, field<int64_t>(json, where, "stop"));
  if (start < 0) return refuse(where, "\"start\" must not be negative");
  if (stop != 0) return refuse(where, "a \"stop\" other than 0 is not supported");
  return std::unique_ptr<const DecoderPart>(
      new StripDecoder(std::move(character), static_cast<size_t>(start), fused));
}

}  // namespace valora::text
