// Decoder "Replace": replaces a text in every token.
#pragma once

#include "base/json/json.h"
#include "base/result.h"
#include "text/decoders/part.h"

namespace valora::text {

Result<std::unique_ptr<const DecoderPart>> make_replace_decoder(const Json& json,
                                                                const std::string& where);

}  // namespace valora::text
