// Decoder "Metaspace": replaces the visible character by a space, and removes it from the first
// token.
#pragma once

#include "base/json/json.h"
#include "base/result.h"
#include "text/decoders/part.h"

namespace valora::text {

Result<std::unique_ptr<const DecoderPart>> make_metaspace_decoder(const Json& json,
                                                                  const std::string& where);

}  // namespace valora::text
