#include "text/decoders/decoder.h"

#include <algorithm>

#include "text/decoders/parts.h"
#include "text/row_reader.h"

namespace valora::text {
namespace {

// Limited because all tokens are decoded once when the file is loaded.
constexpr size_t kMaxDecoderGrowth = 16;

using DecoderPartPtr = std::unique_ptr<const DecoderPart>;

Result<DecoderPartPtr> make_decoder_part(const Json& json, const std::string& type,
                                         const std::string& where, bool fused) {
  if (type == "Fuse") return make_fuse_decoder(json, where);
  if (type == "Strip") return make_strip_decoder(json, where, fused);
  const auto known = {"ByteLevel", "Metaspace", "Replace", "ByteFallback"};
  if (std::ranges::find(known, type) == known.end())
    return refuse(where, "decoder " + in_quotes(type) + " is not supported");
  if (fused)
    return refuse(
        where, "decoder " + in_quotes(type) + " after one that joins the tokens is not supported");
  if (type == "ByteLevel") return make_byte_level_decoder(json, where);
  if (type == "Metaspace") return make_metaspace_decoder(json, where);
  if (type == "Replace") return make_replace_decoder(json, where);
  return make_byte_fallback_decoder(json, where);
}

}  // namespace

Result<Decoder> Decoder::read(const Json& json, const std::string& where) {
  if (json.is_null()) return refuse(where, "a tokenizer without a decoder is not supported");
  bool fused = false;
  const auto make = [&](const Json& part, const std::string& type, const std::string& part_where) {
    auto made = make_decoder_part(part, type, part_where, fused);
    fused = fused || (made.ok() && (*made)->fuses());
    return made;
  };
  VALORA_TRY(parts, RowReader<DecoderPart>("decoders", kMaxDecoderGrowth, make).read(json, where));
  return Decoder(std::move(parts));
}

std::string Decoder::bytes(std::string_view token) const {
  std::string bytes(token);
  for (const DecoderPartPtr& part : parts_) bytes = part->bytes(bytes);
  return bytes;
}

std::string DecodeStream::push(std::string_view token) { return run_from(0, {std::string(token)}); }

std::string DecodeStream::finish() {
  std::string text;
  for (size_t i = 0; i < states_.size(); ++i) {
    DecodedPieces pieces;
    (*parts_)[i]->finish(states_[i], pieces);
    text += run_from(i + 1, std::move(pieces));
  }
  return text;
}

std::string DecodeStream::provisional() const {
  for (size_t i = 0; i < states_.size(); ++i)
    if (!(*parts_)[i]->holds_whole_text(states_[i])) return {};
  return DecodeStream(*this).finish();
}

std::string DecodeStream::run_from(size_t part, DecodedPieces pieces) {
  DecodedPieces next;
  for (; part < states_.size() && !pieces.empty(); ++part) {
    next.clear();
    for (std::string& piece : pieces) (*parts_)[part]->push(states_[part], std::move(piece), next);
    pieces.swap(next);
  }
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  return text;
}

}  // namespace valora::text
