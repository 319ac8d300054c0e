#include "text/decoders/replace.h"

#include "text/json_fields.h"
#include "text/replacement.h"

namespace valora::text {
namespace {

class ReplaceDecoder final : public DecoderPart {
 public:
  explicit ReplaceDecoder(Replacement replacement) : replacement_(std::move(replacement)) {}
  void push(DecoderState&, std::string piece, DecodedPieces& out) const override {
    out.push_back(bytes(piece));
  }
  std::string bytes(std::string_view token) const override { return replacement_.apply(token); }
  size_t max_growth() const override { return replacement_.max_growth(); }

 private:
  Replacement replacement_;
};

}  // namespace

Result<std::unique_ptr<const DecoderPart>> make_replace_decoder(const Json& json,
                                                                const std::string& where) {
  VALORA_TRY(replacement, Replacement::read(json, where));
  // Loading the file decodes every token of the vocabulary, which is too often for patterns that
  // may backtrack.
  if (json.at("pattern").contains("Regex"))
    return refuse(where, "decoder \"Replace\" with a regular expression is not supported");
  return std::unique_ptr<const DecoderPart>(new ReplaceDecoder(std::move(replacement)));
}

}  // namespace valora::text
