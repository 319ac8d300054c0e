// Decodes AVIF through libavif and dav1d, with the conversion to RGB that PIL uses.
#include <cstring>
#include <memory>

#include <avif/avif.h>

#include "media/image/decoders.h"

namespace valora::media {
namespace {

constexpr char kAvif[] = "AVIF image";
// A picture has one frame, and a grid of them one per cell, alpha apart. A hostile file may have
// any number of frames that are decoded and never shown.
constexpr int kMostAv1Frames = 1024;
constexpr uint32_t kMostShownFrames = 1u << 16;  // of a sequence, whose first one is decoded

// Counts the frames in AV1's stream of units, which arrives in pieces.
class Av1Frames {
 public:
  void read(ByteSpan piece) {
    for (size_t at = 0; at < piece.size();) {
      if (left_ > 0) {
        const size_t taken = std::min<uint64_t>(left_, piece.size() - at);
        left_ -= taken;
        at += taken;
      } else {
        read_header(piece[at++]);
      }
    }
  }
  int count() const { return count_; }

 private:
  enum class Next : uint8_t { kHeader, kExtension, kSize };

  void read_header(uint8_t byte) {
    if (next_ == Next::kHeader) {
      const int type = byte >> 3 & 15;
      if (type == 3 || type == 6 || type == 7) ++count_;  // frame headers and frames
      size_ = 0, shift_ = 0;
      sized_ = (byte & 2) != 0;
      next_ = byte & 4 ? Next::kExtension : sized_ ? Next::kSize : Next::kHeader;
    } else if (next_ == Next::kExtension) {
      next_ = sized_ ? Next::kSize : Next::kHeader;
    } else {
      size_ |= uint64_t(byte & 0x7f) << shift_;
      shift_ += 7;
      if (byte & 0x80 && shift_ < 56) return;
      left_ = size_;
      next_ = Next::kHeader;
    }
  }

  Next next_ = Next::kHeader;
  bool sized_ = true;
  uint64_t size_ = 0, left_ = 0;
  int shift_ = 0, count_ = 0;
};

// Gives libavif the file and watches what it decodes.
struct AvifSource {
  avifIO io{};
  ByteSpan bytes;
  bool decoding = false;
  Av1Frames frames;
};

avifResult read_avif(avifIO* io, uint32_t flags, uint64_t offset, size_t size, avifROData* out) {
  auto& source = *static_cast<AvifSource*>(io->data);
  if (flags != 0 || offset > source.bytes.size()) return AVIF_RESULT_IO_ERROR;
  const size_t taken = std::min<size_t>(size, source.bytes.size() - offset);
  *out = {source.bytes.data() + offset, taken};
  if (!source.decoding) return AVIF_RESULT_OK;
  source.frames.read({out->data, out->size});
  return source.frames.count() > kMostAv1Frames ? AVIF_RESULT_IO_ERROR : AVIF_RESULT_OK;
}

// The EXIF orientation that equals the file's rotation and mirroring, which come in this order.
int avif_orientation(const avifImage& image) {
  // [mirror axis, or 2 for none][counter-clockwise quarter turns]
  static constexpr int kOrientations[3][4] = {{4, 5, 2, 7}, {2, 7, 4, 5}, {1, 8, 3, 6}};
  const int turns = image.transformFlags & AVIF_TRANSFORM_IROT ? image.irot.angle & 3 : 0;
  const int mirror = image.transformFlags & AVIF_TRANSFORM_IMIR ? image.imir.mode & 1 : 2;
  return kOrientations[mirror][turns];
}

using AvifDecoder = std::unique_ptr<avifDecoder, decltype(&avifDecoderDestroy)>;

Error avif_error(avifResult result, const AvifSource& source) {
  if (source.frames.count() > kMostAv1Frames) return broken_image(kAvif, "it has too many frames");
  return broken_image(kAvif, avifResultToString(result));
}

// Reads everything before the pixels. `source` must outlive the decoder.
Result<AvifDecoder> parse_avif(ByteSpan bytes, AvifSource& source, const Limits& limits) {
  source.bytes = bytes;
  source.io.read = read_avif;
  source.io.sizeHint = bytes.size();
  source.io.persistent = AVIF_TRUE;
  source.io.data = &source;
  AvifDecoder decoder(avifDecoderCreate(), avifDecoderDestroy);
  if (!decoder) return internal("out of memory for an AVIF decoder");
  decoder->codecChoice = AVIF_CODEC_CHOICE_DAV1D;
  decoder->maxThreads = 1;
  decoder->ignoreExif = decoder->ignoreXMP = AVIF_TRUE;
  // As in PIL: older encoders leave these boxes out.
  decoder->strictFlags &= ~uint32_t{AVIF_STRICT_CLAP_VALID | AVIF_STRICT_PIXI_REQUIRED};
  decoder->imageCountLimit = kMostShownFrames;
  avifDecoderSetIO(decoder.get(), &source.io);
  const avifResult parsed = avifDecoderParse(decoder.get());
  if (decoder->image && decoder->image->width > 0)
    VALORA_CHECK(check_size(kAvif, decoder->image->width, decoder->image->height, limits));
  if (parsed != AVIF_RESULT_OK) return avif_error(parsed, source);
  // dav1d's limit, whatever sizes the frames state.
  decoder->imageSizeLimit =
      static_cast<uint32_t>(std::min<int64_t>(limits.max_pixels, AVIF_DEFAULT_IMAGE_SIZE_LIMIT));
  return decoder;
}

}  // namespace

Result<StoredSize> avif_size(ByteSpan bytes, const Limits& limits) {
  AvifSource source;
  VALORA_TRY(decoder, parse_avif(bytes, source, limits));
  const avifImage& image = *decoder->image;
  return StoredSize{image.width, image.height, avif_orientation(image)};
}

Result<StoredImage> decode_avif(ByteSpan bytes, const Limits& limits) {
  AvifSource source;
  VALORA_TRY(decoder, parse_avif(bytes, source, limits));
  source.decoding = true;
  avifResult result = avifDecoderNextImage(decoder.get());
  if (result != AVIF_RESULT_OK) return avif_error(result, source);
  const avifImage& image = *decoder->image;
  VALORA_CHECK(check_size(kAvif, image.width, image.height, limits));

  avifRGBImage rgb;
  avifRGBImageSetDefaults(&rgb, &image);
  rgb.depth = 8;
  // PIL drops alpha after the conversion, which also divides colours by a premultiplied one.
  rgb.format = decoder->alphaPresent ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
  const size_t channels = avifRGBImagePixelSize(&rgb);
  const size_t pixels = size_t(image.width) * image.height;
  StoredImage stored{blank_image(image.width, image.height), avif_orientation(image)};
  std::vector<uint8_t> with_alpha(channels == 3 ? 0 : pixels * channels);
  rgb.pixels = channels == 3 ? stored.image.rgb.data() : with_alpha.data();
  rgb.rowBytes = static_cast<uint32_t>(image.width * channels);
  result = avifImageYUVToRGB(&image, &rgb);
  if (result != AVIF_RESULT_OK) return avif_error(result, source);
  for (size_t i = 0; i < pixels && channels > 3; ++i)
    std::memcpy(&stored.image.rgb[i * 3], &with_alpha[i * channels], 3);
  return stored;
}

}  // namespace valora::media
