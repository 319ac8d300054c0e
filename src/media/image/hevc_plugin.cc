#include "media/image/hevc_plugin.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include <libheif/heif.h>
#include <libheif/heif_plugin.h>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/pixdesc.h>
}

namespace valora::media {
namespace {

thread_local HevcBudget* current_budget = nullptr;

// Tiles reach beyond the picture, alpha is a picture of its own, and a picture may be decoded
// twice.
constexpr int64_t kPixelsPerPicture = 8;
constexpr int kPriority = 1000;  // libheif's own decoder has 100

struct HevcDecoder {
  std::vector<uint8_t> units;  // each with its length before it
};

heif_error ok() { return {heif_error_Ok, heif_suberror_Unspecified, ""}; }
heif_error bad(const char* why) {
  return {heif_error_Decoder_plugin_error, heif_suberror_Unspecified, why};
}

const char* plugin_name() { return "libavcodec"; }

int supports(heif_compression_format format) {
  return format == heif_compression_HEVC ? kPriority : 0;
}

heif_error make_decoder(void** decoder) {
  *decoder = new HevcDecoder;
  return ok();
}

void free_decoder(void* decoder) { delete static_cast<HevcDecoder*>(decoder); }

heif_error push_data(void* decoder, const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  auto& units = static_cast<HevcDecoder*>(decoder)->units;
  units.insert(units.end(), bytes, bytes + size);
  return ok();
}

// Replaces the lengths by start codes of the same size.
bool to_start_codes(std::vector<uint8_t>& units) {
  constexpr size_t kLength = 4;
  for (size_t at = 0; at < units.size();) {
    if (units.size() - at < kLength) return false;
    const size_t length = size_t(units[at]) << 24 | size_t(units[at + 1]) << 16 |
                          size_t(units[at + 2]) << 8 | units[at + 3];
    if (length > units.size() - at - kLength) return false;
    units[at] = units[at + 1] = units[at + 2] = 0;
    units[at + 3] = 1;
    at += kLength + length;
  }
  return true;
}

struct FreeHevc {
  void operator()(AVFrame* p) const { av_frame_free(&p); }
  void operator()(AVPacket* p) const { av_packet_free(&p); }
  void operator()(AVCodecContext* p) const { avcodec_free_context(&p); }
};

using HevcFrame = std::unique_ptr<AVFrame, FreeHevc>;

// The picture, or null.
HevcFrame decode_units(std::vector<uint8_t>& units, int64_t max_pixels) {
  const size_t size = units.size();
  units.resize(size + AV_INPUT_BUFFER_PADDING_SIZE);
  const AVCodec* codec = avcodec_find_decoder(AV_CODEC_ID_HEVC);
  const std::unique_ptr<AVCodecContext, FreeHevc> context(avcodec_alloc_context3(codec));
  const std::unique_ptr<AVPacket, FreeHevc> packet(av_packet_alloc());
  HevcFrame frame(av_frame_alloc());
  if (!codec || !context || !packet || !frame) return nullptr;
  context->thread_count = 1;
  context->max_pixels = max_pixels;
  context->err_recognition = AV_EF_EXPLODE;
  if (avcodec_open2(context.get(), codec, nullptr) < 0) return nullptr;
  packet->data = units.data();
  packet->size = static_cast<int>(size);
  if (avcodec_send_packet(context.get(), packet.get()) < 0) return nullptr;
  avcodec_send_packet(context.get(), nullptr);
  if (avcodec_receive_frame(context.get(), frame.get()) < 0) return nullptr;
  if (frame->decode_error_flags != 0 || frame->flags & AV_FRAME_FLAG_CORRUPT) return nullptr;
  return frame;
}

heif_chroma chroma_of(const AVPixFmtDescriptor& format) {
  if (format.nb_components == 1) return heif_chroma_monochrome;
  if (format.log2_chroma_w == 0) return heif_chroma_444;
  return format.log2_chroma_h == 0 ? heif_chroma_422 : heif_chroma_420;
}

bool copy_plane(const AVFrame& frame, const AVPixFmtDescriptor& format, int plane,
                heif_image* image) {
  static constexpr heif_channel kChannels[] = {heif_channel_Y, heif_channel_Cb, heif_channel_Cr};
  const int depth = format.comp[plane].depth;
  const int across = plane > 0 ? format.log2_chroma_w : 0,
            down = plane > 0 ? format.log2_chroma_h : 0;
  const int width = (frame.width + (1 << across) - 1) >> across;
  const int height = (frame.height + (1 << down) - 1) >> down;
  if (heif_image_add_plane(image, kChannels[plane], width, height, depth).code != heif_error_Ok)
    return false;
  int stride = 0;
  uint8_t* out = heif_image_get_plane(image, kChannels[plane], &stride);
  const size_t row = size_t(width) * (depth > 8 ? 2 : 1);
  for (int y = 0; y < height; ++y)
    std::memcpy(out + ptrdiff_t{y} * stride,
                frame.data[plane] + ptrdiff_t{y} * frame.linesize[plane], row);
  return true;
}

heif_error decode_picture(void* decoder, heif_image** out) {
  HevcBudget* budget = current_budget;
  auto& units = static_cast<HevcDecoder*>(decoder)->units;
  if (!budget || budget->exceeded || !to_start_codes(units))
    return bad("its pixel data is corrupt");
  const HevcFrame frame = decode_units(units, budget->max_pixels);
  if (!frame) return bad("its pixel data is corrupt or truncated");
  budget->pixels_left -= int64_t{frame->width} * frame->height;
  budget->exceeded = budget->pixels_left < 0;
  if (budget->exceeded) return bad("its tiles have more pixels than the picture");
  const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame->format));
  if (!format || format->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_BE) ||
      (format->nb_components != 1 && format->nb_components != 3))
    return bad("its pixel format is not supported");
  const bool grey = format->nb_components == 1;
  heif_image* image = nullptr;
  heif_error made = heif_image_create(frame->width, frame->height,
                                      grey ? heif_colorspace_monochrome : heif_colorspace_YCbCr,
                                      chroma_of(*format), &image);
  if (made.code != heif_error_Ok) return made;
  for (int plane = 0; plane < format->nb_components; ++plane)
    if (!copy_plane(*frame, *format, plane, image)) {
      heif_image_release(image);
      return bad("out of memory");
    }
  if (!budget->chroma) {
    budget->chroma = chroma_of(*format);
    budget->matrix = frame->colorspace;
    budget->full_range = frame->color_range == AVCOL_RANGE_JPEG;
  }
  *out = image;
  return ok();
}

const heif_decoder_plugin kPlugin = {
    .plugin_api_version = 1,
    .get_plugin_name = plugin_name,
    .init_plugin = nullptr,
    .deinit_plugin = nullptr,
    .does_support_format = supports,
    .new_decoder = make_decoder,
    .free_decoder = free_decoder,
    .push_data = push_data,
    .decode_image = decode_picture,
    .set_strict_decoding = nullptr,
    .id_name = "libavcodec",
};

}  // namespace

HevcBudget::HevcBudget(int64_t max_pixels)
    : max_pixels(max_pixels), pixels_left(kPixelsPerPicture * max_pixels) {
  current_budget = this;
}
HevcBudget::~HevcBudget() { current_budget = nullptr; }

void register_hevc_plugin() {
  av_log_set_level(AV_LOG_QUIET);  // the errors returned are enough
  static const bool registered = heif_register_decoder_plugin(&kPlugin).code == heif_error_Ok;
  (void)registered;
}

}  // namespace valora::media
