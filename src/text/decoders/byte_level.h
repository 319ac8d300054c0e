// Decoder "ByteLevel": every character back to its byte.
#pragma once

#include "text/decoders/decoder.h"

namespace valora::text {

class ByteLevelDecoder final : public Decoder {
 public:
  // A token with a character outside the byte alphabet stands for its own text.
  std::string bytes(std::string_view token) const override;
};

}  // namespace valora::text
