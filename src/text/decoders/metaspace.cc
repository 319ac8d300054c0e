#include "text/decoders/metaspace.h"

#include "text/metaspace.h"

namespace valora::text {
namespace {

class MetaspaceDecoder final : public DecoderPart {
 public:
  explicit MetaspaceDecoder(Metaspace settings) : settings_(std::move(settings)) {}

  void push(DecoderState& state, std::string piece, DecodedPieces& out) const override {
    const bool first = !state.settled;
    state.settled = true;
    out.push_back(replaced(piece, first && settings_.scheme != PrependScheme::kNever ? "" : " "));
  }
  std::string bytes(std::string_view token) const override { return replaced(token, " "); }

 private:
  std::string replaced(std::string_view token, std::string_view by) const {
    std::string out;
    for (size_t at; (at = token.find(settings_.replacement)) != token.npos;) {
      out += token.substr(0, at);
      out += by;
      token.remove_prefix(at + settings_.replacement.size());
    }
    return out += token;
  }

  Metaspace settings_;
};

}  // namespace

Result<std::unique_ptr<const DecoderPart>> make_metaspace_decoder(const Json& json,
                                                                  const std::string& where) {
  VALORA_TRY(settings, Metaspace::read(json, where));
  return std::unique_ptr<const DecoderPart>(new MetaspaceDecoder(std::move(settings)));
}

}  // namespace valora::text
