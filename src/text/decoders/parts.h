// The parts of a decoder, and their makers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::text {

using DecodedPieces = std::vector<std::string>;

// A part's state for one sequence. Each part uses the members it needs.
struct DecoderState {
  std::string held;  // bytes that are not final yet
  size_t seen = 0;
  bool settled = false;
};

// Takes tokens one at a time and returns text as soon as no later token can change it.
class DecoderPart {
 public:
  virtual ~DecoderPart() = default;
  virtual void push(DecoderState& state, std::string piece, DecodedPieces& out) const = 0;
  // Ends the sequence and returns the text held back.
  virtual void finish(DecoderState&, DecodedPieces&) const {}
  // True if the held bytes are whole characters, which only a later token could invalidate.
  virtual bool holds_whole_text(const DecoderState& state) const { return state.held.empty(); }
  // The bytes of one token in the middle of a text.
  virtual std::string bytes(std::string_view token) const = 0;
  virtual size_t max_growth() const { return 1; }  // the largest factor by which a token can grow
  // True if the results are pieces of one text rather than tokens.
  virtual bool fuses() const { return false; }
};

using DecoderParts = std::vector<std::unique_ptr<const DecoderPart>>;

// Decoder "ByteFallback": "<0x0A>" is one byte. A run of such tokens that is invalid UTF-8 becomes
// one U+FFFD per byte.
Result<std::unique_ptr<const DecoderPart>> make_byte_fallback_decoder(const Json& json,
                                                                      const std::string& where);

// Decoder "ByteLevel": maps each character back to its byte. A token containing any other character
// is kept as text.
Result<std::unique_ptr<const DecoderPart>> make_byte_level_decoder(const Json& json,
                                                                   const std::string& where);

// Decoder "Fuse": joins the tokens into one text for the following decoders.
Result<std::unique_ptr<const DecoderPart>> make_fuse_decoder(const Json& json,
                                                             const std::string& where);

// Decoder "Metaspace": replaces the visible character by a space, and removes it from the first
// token.
Result<std::unique_ptr<const DecoderPart>> make_metaspace_decoder(const Json& json,
                                                                  const std::string& where);

// Decoder "Replace": replaces a text in every token.
Result<std::unique_ptr<const DecoderPart>> make_replace_decoder(const Json& json,
                                                                const std::string& where);

// Decoder "Strip": removes a leading character from every token, or from the text if tokens were
// joined. fused: an earlier decoder has joined the tokens.
Result<std::unique_ptr<const DecoderPart>> make_strip_decoder(const Json& json,
                                                              const std::string& where, bool fused);

}  // namespace valora::text
