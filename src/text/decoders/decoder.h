// "decoder" of tokenizer.json: tokens back to text, all at once or as they come.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/decoders/part.h"

namespace valora::text {

class Decoder {
 public:
  // Refuses kinds of decoders, and orders of them, whose text cannot be given exactly.
  static Result<Decoder> read(const Json& json, const std::string& where);

  // The bytes of one token in the middle of a text; a character's bytes may be spread over several
  // tokens.
  std::string bytes(std::string_view token) const;

 private:
  friend class DecodeStream;
  explicit Decoder(DecoderParts parts) : parts_(std::move(parts)) {}
  DecoderParts parts_;
};

// Decodes one sequence. All that push() and finish() return, put together, is the decoder's text of
// all tokens.
class DecodeStream {
 public:
  explicit DecodeStream(const Decoder& decoder)
      : parts_(&decoder.parts_), states_(decoder.parts_.size()) {}

  std::string push(std::string_view token);
  std::string finish();
  // What finish() would return now if that is whole characters, otherwise nothing.
  std::string provisional() const;

 private:
  std::string run_from(size_t part, DecodedPieces pieces);

  const DecoderParts* parts_;
  std::vector<DecoderState> states_;
};

}  // namespace valora::text
