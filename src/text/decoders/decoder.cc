#include "text/decoders/decoder.h"

#include "text/decoders/byte_level.h"
#include "text/json_fields.h"

namespace valora::text {

Result<std::unique_ptr<const Decoder>> make_decoder(const Json& json, const std::string& where) {
  if (json.is_null()) return refuse(where, "a tokenizer without a decoder is not supported");
  VALORA_TRY(type, part_type(json, where));
  if (type == "ByteLevel") {
    VALORA_CHECK(check_fields(json, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    return std::unique_ptr<const Decoder>(new ByteLevelDecoder);
  }
  return refuse(where, "decoder " + in_quotes(type) + " is not supported");
}

}  // namespace valora::text
