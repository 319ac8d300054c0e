// Decoder "ByteLevel": maps each character back to its byte. A token containing any other character
// is kept as text.
#pragma once

#include "base/json/json.h"
#include "base/result.h"
#include "text/decoders/part.h"

namespace valora::text {

Result<std::unique_ptr<const DecoderPart>> make_byte_level_decoder(const Json& json,
                                                                   const std::string& where);

}  // namespace valora::text
