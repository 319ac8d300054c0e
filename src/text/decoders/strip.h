// Decoder "Strip": removes a leading character from every token, or from the text if tokens were
// joined.
#pragma once

#include "base/json/json.h"
#include "base/result.h"
#include "text/decoders/part.h"

namespace valora::text {

// fused: an earlier decoder has joined the tokens.
Result<std::unique_ptr<const DecoderPart>> make_strip_decoder(const Json& json,
                                                              const std::string& where, bool fused);

}  // namespace valora::text
