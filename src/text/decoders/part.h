// One part of a decoder. Takes tokens one by one and returns text as soon as no later token can
// change it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace valora::text {

using DecodedPieces = std::vector<std::string>;

// A part's state of one sequence. Each part uses the members that it needs.
struct DecoderState {
  std::string held;  // bytes that are not final yet
  size_t seen = 0;
  bool settled = false;
};

class DecoderPart {
 public:
  virtual ~DecoderPart() = default;
  virtual void push(DecoderState& state, std::string piece, DecodedPieces& out) const = 0;
  // The sequence ends: returns the text held back.
  virtual void finish(DecoderState&, DecodedPieces&) const {}
  // True if the bytes held back are whole characters, which only a later token could make invalid.
  virtual bool holds_whole_text(const DecoderState& state) const { return state.held.empty(); }
  // The bytes of one token in the middle of a text.
  virtual std::string bytes(std::string_view token) const = 0;
  virtual size_t max_growth() const { return 1; }  // the maximal factor by which a token grows
  // The results are pieces of one text, not tokens.
  virtual bool fuses() const { return false; }
};

using DecoderParts = std::vector<std::unique_ptr<const DecoderPart>>;

}  // namespace valora::text
