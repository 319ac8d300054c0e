// One part of a decoder: tokens go in one by one, pieces of text come out as soon as nothing later
// can change them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace valora::text {

using DecodedPieces = std::vector<std::string>;

// What a part remembers of one sequence; each uses what it needs of it.
struct DecoderState {
  std::string held;  // bytes that are not final
  size_t seen = 0;
  bool settled = false;
};

class DecoderPart {
 public:
  virtual ~DecoderPart() = default;
  virtual void push(DecoderState& state, std::string piece, DecodedPieces& out) const = 0;
  // The end of the sequence: what was held back.
  virtual void finish(DecoderState&, DecodedPieces&) const {}
  // Whether what is held back are whole characters, which only a later token could spoil.
  virtual bool holds_whole_text(const DecoderState& state) const { return state.held.empty(); }
  // The bytes of one token in the middle of a text.
  virtual std::string bytes(std::string_view token) const = 0;
  virtual size_t max_growth() const { return 1; }  // a token becomes at most so many times longer
  virtual bool fuses() const {
    return false;
  }  // what comes out are stretches of one text, no tokens any more
};

using DecoderParts = std::vector<std::unique_ptr<const DecoderPart>>;

}  // namespace valora::text
