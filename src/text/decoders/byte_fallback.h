// Decoder "ByteFallback": "<0x0A>" is one byte. A run of such tokens that is invalid UTF-8 becomes
// one U+FFFD per byte.
#pragma once

#include "base/json/json.h"
#include "base/result.h"
#include "text/decoders/part.h"

namespace valora::text {

Result<std::unique_ptr<const DecoderPart>> make_byte_fallback_decoder(const Json& json,
                                                                      const std::string& where);

}  // namespace valora::text
