#include <memory>

#include <webp/decode.h>
#include <webp/demux.h>

#include "media/image/decoders.h"
#include "media/image/orientation.h"

namespace valora::media {
namespace {

using Demuxer = std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)>;
using AnimationDecoder = std::unique_ptr<WebPAnimDecoder, decltype(&WebPAnimDecoderDelete)>;

ByteSpan chunk(const WebPDemuxer* demuxer, const char* name) {
  WebPChunkIterator found;
  ByteSpan data;
  // The bytes are part of the file and outlive the iterator.
  if (WebPDemuxGetChunk(demuxer, name, 1, &found)) data = {found.chunk.bytes, found.chunk.size};
  WebPDemuxReleaseChunkIterator(&found);
  return data;
}

Result<StoredSize> read_size(const WebPDemuxer* demuxer, const Limits& limits) {
  if (!demuxer) return broken_image("WebP image", "the file is truncated or corrupt");
  const StoredSize size{WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH),
                        WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT)};
  VALORA_CHECK(check_size("WebP image", size.width, size.height, limits));
  const ByteSpan xmp = chunk(demuxer, "XMP ");
  const int orientation = orientation_of(chunk(demuxer, "EXIF"),
                                         {reinterpret_cast<const char*>(xmp.data()), xmp.size()});
  return StoredSize{size.width, size.height, orientation};
}

}  // namespace

Result<StoredSize> webp_size(ByteSpan bytes, const Limits& limits) {
  const WebPData data{bytes.data(), bytes.size()};
  const Demuxer demuxer(WebPDemux(&data), WebPDemuxDelete);
  return read_size(demuxer.get(), limits);
}

// As in PIL, still files also use the animation decoder: the first frame on its canvas, with alpha
// dropped.
Result<StoredImage> decode_webp(ByteSpan bytes, const Limits& limits) {
  const WebPData data{bytes.data(), bytes.size()};
  const Demuxer demuxer(WebPDemux(&data), WebPDemuxDelete);
  VALORA_TRY(size, read_size(demuxer.get(), limits));

  WebPAnimDecoderOptions options;
  if (!WebPAnimDecoderOptionsInit(&options))
    return internal("libwebp does not match the headers of this build");
  options.color_mode = MODE_RGBA;
  const AnimationDecoder decoder(WebPAnimDecoderNew(&data, &options), WebPAnimDecoderDelete);
  WebPAnimInfo info;
  uint8_t* rgba = nullptr;  // owned by the decoder
  int timestamp = 0;
  if (!decoder || !WebPAnimDecoderGetInfo(decoder.get(), &info) ||
      !WebPAnimDecoderGetNext(decoder.get(), &rgba, &timestamp))
    return broken_image("WebP image", "the first frame is corrupt");

  StoredImage stored{blank_image(info.canvas_width, info.canvas_height), size.orientation};
  uint8_t* out = stored.image.rgb.data();
  for (const uint8_t* end = out + stored.image.rgb.size(); out != end; out += 3, rgba += 4)
    out[0] = rgba[0], out[1] = rgba[1], out[2] = rgba[2];
  return stored;
}

}  // namespace valora::media
