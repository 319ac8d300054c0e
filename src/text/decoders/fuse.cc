#include "text/decoders/fuse.h"

#include "text/json_fields.h"

namespace valora::text {
namespace {

class FuseDecoder final : public DecoderPart {
 public:
  void push(DecoderState&, std::string piece, DecodedPieces& out) const override {
    out.push_back(std::move(piece));
  }
  std::string bytes(std::string_view token) const override { return std::string(token); }
  bool fuses() const override { return true; }
};

}  // namespace

Result<std::unique_ptr<const DecoderPart>> make_fuse_decoder(const Json& json,
                                                             const std::string& where) {
  VALORA_CHECK(check_fields(json, where, {"type"}));
  return std::unique_ptr<const DecoderPart>(new FuseDecoder);
}

}  // namespace valora::text
