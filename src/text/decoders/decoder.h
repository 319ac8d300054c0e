// "decoder" of tokenizer.json: converts tokens to text, all at once or streaming.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "text/decoders/parts.h"

namespace valora::text {

class Decoder {
 public:
  // Refuses decoders, and combinations of decoders, that cannot be reproduced exactly.
  static Result<Decoder> read(const Json& json, const std::string& where);

  // The bytes of one token in the middle of a text. A character may span several tokens.
  std::string bytes(std::string_view token) const;

 private:
  friend class DecodeStream;
  explicit Decoder(DecoderParts parts) : parts_(std::move(parts)) {}
  DecoderParts parts_;
};

// Decodes one sequence. The concatenated results of push() and finish() are the decoder's text of
// all tokens.
class DecodeStream {
 public:
  explicit DecodeStream(const Decoder& decoder)
      : parts_(&decoder.parts_), states_(decoder.parts_.size()) {}

  std::string push(std::string_view token);
  std::string finish();
  // The result of finish() if called now, provided that it consists of whole characters; otherwise
  // empty.
  std::string provisional() const;

 private:
  std::string run_from(size_t part, DecodedPieces pieces);

  const DecoderParts* parts_;
  std::vector<DecoderState> states_;
};

}  // namespace valora::text
