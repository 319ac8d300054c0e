#include "media/video/libav.h"

#include <cmath>
#include <cstring>
#include <vector>

extern "C" {
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
}

#include <fmt/format.h>

#include "media/image/decoders.h"
#include "media/image/orientation.h"

namespace valora::media {
namespace {

// The deprecated full-range pixel formats equal the plain ones with a range flag.
AVPixelFormat plain_format(AVPixelFormat format, bool& full_range) {
  switch (format) {
    case AV_PIX_FMT_YUVJ420P: full_range = true; return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ411P: full_range = true; return AV_PIX_FMT_YUV411P;
    case AV_PIX_FMT_YUVJ422P: full_range = true; return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ440P: full_range = true; return AV_PIX_FMT_YUV440P;
    case AV_PIX_FMT_YUVJ444P: full_range = true; return AV_PIX_FMT_YUV444P;
    default: return format;
  }
}

}  // namespace

void silence_libav() {
  static const bool quiet = (av_log_set_level(AV_LOG_QUIET), true);
  (void)quiet;
}

std::string libav_reason(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = "";
  av_strerror(code, text, sizeof text);
  return text;
}

Error broken_video(std::string_view why) {
  return invalid(fmt::format("the video cannot be decoded: {}", why));
}

int display_orientation(const AVStream& stream) {
  size_t size = 0;
  const uint8_t* matrix = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
  if (!matrix || size < 9 * sizeof(int32_t)) return 1;
  int32_t values[9];
  std::memcpy(values, matrix, sizeof values);
  const double counter_clockwise = av_display_rotation_get(values);
  if (std::isnan(counter_clockwise)) return 1;
  switch ((std::lround(-counter_clockwise / 90) % 4 + 4) % 4) {
    case 1: return 6;
    case 2: return 3;
    case 3: return 8;
    default: return 1;
  }
}

int probe_streams(AVFormatContext* format, const Limits& limits) {
  AVDictionary* options = nullptr;
  av_dict_set_int(&options, "max_pixels", limits.max_pixels, 0);
  av_dict_set_int(&options, "threads", 1, 0);
  std::vector<AVDictionary*> all(format->nb_streams, nullptr);
  for (AVDictionary*& each : all) av_dict_copy(&each, options, 0);
  av_dict_free(&options);
  const int code = avformat_find_stream_info(format, all.data());
  for (AVDictionary*& each : all) av_dict_free(&each);
  return code;
}

AVStream* choose_video(AVFormatContext* format, const AVCodec** codec) {
  const int index = av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, codec, 0);
  if (index < 0 || !*codec) return nullptr;
  for (unsigned i = 0; i < format->nb_streams; ++i)
    if (static_cast<int>(i) != index) format->streams[i]->discard = AVDISCARD_ALL;
  return format->streams[index];
}

std::unique_ptr<AVCodecContext, FreeLibav> make_decoder(const AVCodec* codec,
                                                        const AVStream& stream,
                                                        const Limits& limits) {
  std::unique_ptr<AVCodecContext, FreeLibav> decoder(avcodec_alloc_context3(codec));
  if (!decoder || avcodec_parameters_to_context(decoder.get(), stream.codecpar) < 0) return nullptr;
  decoder->thread_count = 1;
  decoder->max_pixels = limits.max_pixels;
  decoder->pkt_timebase = stream.time_base;
  return decoder;
}

Result<Image> RgbConverter::to_rgb(const AVFrame& frame, int orientation, const Limits& limits) {
  VALORA_CHECK(check_size("video", frame.width, frame.height, limits));
  bool full_range = frame.color_range == AVCOL_RANGE_JPEG;
  const AVPixelFormat format = plain_format(static_cast<AVPixelFormat>(frame.format), full_range);
  // Interpolates chroma at full resolution with exact rounding, identical on every CPU. The default
  // is visibly coarser.
  constexpr int kFlags =
      SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_BITEXACT;
  scaler_.reset(sws_getCachedContext(scaler_.release(), frame.width, frame.height, format,
                                     frame.width, frame.height, AV_PIX_FMT_RGB24, kFlags, nullptr,
                                     nullptr, nullptr));
  if (!scaler_) return broken_video("its pixel format is not known");
  // As in other readers, an unspecified matrix means BT.601.
  sws_setColorspaceDetails(scaler_.get(), sws_getCoefficients(frame.colorspace), full_range,
                           sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);

  Image image = blank_image(frame.width, frame.height);
  // swscale's vector code may write past the end of a row, so rows are padded here and packed
  // afterwards.
  const int stride = (frame.width * 3 + 63) / 64 * 64 + 64;
  std::vector<uint8_t> padded(size_t(stride) * frame.height + 64);
  uint8_t* planes[4] = {padded.data()};
  const int strides[4] = {stride};
  if (sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height, planes, strides) !=
      frame.height)
    return broken_video("its frames cannot be converted to RGB");
  for (int y = 0; y < frame.height; ++y)
    std::memcpy(&image.rgb[size_t(y) * frame.width * 3], &padded[size_t(y) * stride],
                size_t(frame.width) * 3);
  return upright(std::move(image), orientation);
}

}  // namespace valora::media
