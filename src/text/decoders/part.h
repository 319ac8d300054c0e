// One part of a decoder. Takes tokens one at a time and returns text as soon as no later token can
// change it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace valora::text {

using DecodedPieces = std::vector<std::string>;

// A part's state for one sequence. Each part uses the members it needs.
struct DecoderState {
  std::string held;  // bytes that are not final yet
  size_t seen = 0;
  bool settled = false;
};

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

}  // namespace valora::text
