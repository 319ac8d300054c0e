// Decoder "Strip": cuts a character from the beginning of every token, or of the text where tokens
// are joined.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "text/decoders/part.h"

namespace valora::text {

// fused: the tokens are joined before.
Result<std::unique_ptr<const DecoderPart>> make_strip_decoder(const Json& json,
                                                              const std::string& where, bool fused);

}  // namespace valora::text
