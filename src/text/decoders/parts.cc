#include "text/decoders/parts.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text/unicode.h"
#include "text/byte_map.h"
#include "text/json_fields.h"
#include "text/metaspace.h"
#include "text/replacement.h"

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

namespace {

class FuseDecoder final : public DecoderPart {
 public:
  void push(DecoderState&, std::string piece, DecodedPieces& out) const override {
    out.push_back(std::move(piece));
  }
  std::string bytes(std::string_view token) const override { return std::string(token); }
  bool fuses() const override { return true; }
};

}  // namespace

Result<std::unique_ptr<const DecoderPart>> make_fuse_decoder(const Json& json,
                                                             const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type"}));
  return std::unique_ptr<const DecoderPart>(new FuseDecoder);
}

namespace {

class MetaspaceDecoder final : public DecoderPart {
 public:
  explicit MetaspaceDecoder(Metaspace settings) : settings_(std::move(settings)) {}

  void push(DecoderState& state, std::string piece, DecodedPieces& out) const override {
    const bool first = !state.settled;
    state.settled = true;
    out.push_back(replaced(piece, first && settings_.scheme != PrependScheme::kNever ? "" : " "));
  }
  std::string bytes(std::string_view token) const override { return replaced(token, " "); }

 private:
  std::string replaced(std::string_view token, std::string_view by) const {
    std::string out;
    for (size_t at; (at = token.find(settings_.replacement)) != token.npos;) {
      out += token.substr(0, at);
      out += by;
      token.remove_prefix(at + settings_.replacement.size());
    }
    return out += token;
  }

  Metaspace settings_;
};

}  // namespace

Result<std::unique_ptr<const DecoderPart>> make_metaspace_decoder(const Json& json,
                                                                  const std::string& where) {
  VALORA_TRY(settings, Metaspace::read(json, where));
  return std::unique_ptr<const DecoderPart>(new MetaspaceDecoder(std::move(settings)));
}

namespace {

class ReplaceDecoder final : public DecoderPart {
 public:
  explicit ReplaceDecoder(Replacement replacement) : replacement_(std::move(replacement)) {}
  void push(DecoderState&, std::string piece, DecodedPieces& out) const override {
    out.push_back(bytes(piece));
  }
  std::string bytes(std::string_view token) const override { return replacement_.apply(token); }
  size_t max_growth() const override { return replacement_.max_growth(); }

 private:
  Replacement replacement_;
};

}  // namespace

Result<std::unique_ptr<const DecoderPart>> make_replace_decoder(const Json& json,
                                                                const std::string& where) {
  VALORA_TRY(replacement, Replacement::read(json, where));
  // Loading the file decodes every token of the vocabulary, which is too often for patterns that
  // may backtrack.
  if (json.at("pattern").contains("Regex"))
    return refuse(where, "decoder \"Replace\" with a regular expression is not supported");
  return std::unique_ptr<const DecoderPart>(new ReplaceDecoder(std::move(replacement)));
}

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
