// Decoder "Fuse": joins the tokens to one text for the decoders after it.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "text/decoders/part.h"

namespace valora::text {

Result<std::unique_ptr<const DecoderPart>> make_fuse_decoder(const Json& json,
                                                             const std::string& where);

}  // namespace valora::text
