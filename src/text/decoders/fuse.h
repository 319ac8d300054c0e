// Decoder "Fuse": joins the tokens into one text for the following decoders.
#pragma once

#include "base/json/json.h"
#include "base/result.h"
#include "text/decoders/part.h"

namespace valora::text {

Result<std::unique_ptr<const DecoderPart>> make_fuse_decoder(const Json& json,
                                                             const std::string& where);

}  // namespace valora::text
