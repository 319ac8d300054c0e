#include "media/video/video_stream.h"

#include <algorithm>
#include <cmath>
#include <cstring>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}

#include <fmt/format.h>

#include "media/fetch/memory_file.h"
#include "media/image/decoders.h"
#include "media/image/orientation.h"
#include "media/video/stop.h"

namespace valora::media {
namespace {

// Demuxers of plain container files. Playlists and scripts (hls, dash, concat, …) are excluded
// because they refer to other files.
constexpr char kContainers[] =
    "mov,matroska,avi,mpegts,mpeg,mpegvideo,m4v,h264,hevc,flv,ogg,asf,ivf,gif,mjpeg,nut";
constexpr int kIoBuffer = 64 << 10;
constexpr int kMaxStreams = 64;

struct Free {
  void operator()(AVFrame* p) const { av_frame_free(&p); }
  void operator()(AVPacket* p) const { av_packet_free(&p); }
  void operator()(AVCodecContext* p) const { avcodec_free_context(&p); }
  void operator()(SwsContext* p) const { sws_freeContext(p); }
};

std::string reason(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = "";
  av_strerror(code, text, sizeof text);
  return text;
}

Error broken_video(std::string_view why) {
  return invalid(fmt::format("the video cannot be decoded: {}", why));
}

// A file of this many packets lasts ten hours.
constexpr size_t kMaxPackets = size_t{1} << 21;

int refuse_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EACCES);
}

int spent(void* opaque) {
  const auto& budget = *static_cast<const DecodeBudget*>(opaque);
  return budget.stop.stop_requested() || std::chrono::steady_clock::now() > budget.deadline;
}

// The EXIF orientation equivalent to the quarter turns that a player applies.
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

// The first bits of a VP9 frame outside a superframe, which always shows a frame.
bool shows_vp9(std::span<const uint8_t> data) {
  if ((data.back() & 0xe0) == 0xc0) return true;  // the superframe's index
  int at = 4;                                     // after the marker and the profile
  if ((data[0] & 0x30) == 0x30) ++at;             // profile 3 has a reserved bit
  const auto bit = [&](int i) { return (data[0] >> (7 - i) & 1) != 0; };
  const bool shows_older = bit(at);
  return shows_older || bit(at + 2);
}

PacketMark mark_of(const AVPacket& packet, AVCodecID codec) {
  const std::span<const uint8_t> data(packet.data, static_cast<size_t>(packet.size));
  PacketMark mark{.time = packet.pts,
                  .key = (packet.flags & AV_PKT_FLAG_KEY) != 0,
                  .shown = (packet.flags & AV_PKT_FLAG_DISCARD) == 0,
                  .timed = packet.pts != AV_NOPTS_VALUE};
  if (codec == AV_CODEC_ID_VP8) mark.shown = mark.shown && (data[0] & 0x10) != 0;
  if (codec == AV_CODEC_ID_VP9) mark.shown = mark.shown && shows_vp9(data);
  // MPEG-4 has packets that repeat the frame before them and give none.
  constexpr size_t kRepeats = 8;
  if (codec == AV_CODEC_ID_MPEG4 && data.size() <= kRepeats) mark.timed = false;
  return mark;
}

}  // namespace

struct VideoStream::Impl {
  Impl(std::span<const uint8_t> bytes, const Limits& limits, DecodeBudget& budget)
      : limits(limits), budget(budget), file{bytes} {}
  ~Impl() {
    decoder.reset();
    avformat_close_input(&format);
    if (io) av_freep(&io->buffer);
    avio_context_free(&io);
  }

  Status open_file();
  Status probe();
  Status open_decoder();
  // The stream's next packet; false at the end.
  Result<bool> read_packet();
  Result<bool> feed_decoder();
  Error over_time() const;

  const Limits limits;
  DecodeBudget& budget;
  MemoryFile file;
  AVIOContext* io = nullptr;
  AVFormatContext* format = nullptr;
  AVStream* stream = nullptr;
  int orientation = 1;
  std::unique_ptr<AVCodecContext, Free> decoder;
  std::unique_ptr<AVPacket, Free> packet{av_packet_alloc()};
  std::unique_ptr<AVFrame, Free> frame{av_frame_alloc()};
  std::unique_ptr<SwsContext, Free> scaler;
  int64_t packets_read = 0;
  bool drained = false;
};

Error VideoStream::Impl::over_time() const {
  if (budget.stop.stop_requested()) return stopped_error();
  return over_limit(
      fmt::format("the video takes more than {} seconds to decode: send a shorter or smaller clip",
                  limits.max_decode_time.count()));
}

Status VideoStream::Impl::open_file() {
  auto* buffer = static_cast<uint8_t*>(av_malloc(kIoBuffer));
  if (buffer)
    io = avio_alloc_context(buffer, kIoBuffer, 0, &file, read_memory, nullptr, seek_memory);
  if (buffer && !io) av_free(buffer);
  format = avformat_alloc_context();
  if (!io || !format || !packet || !frame) return internal("out of memory for a video");
  format->pb = io;
  format->io_open = refuse_open;
  format->interrupt_callback = {spent, &budget};
  format->max_streams = kMaxStreams;
  format->format_whitelist = av_strdup(kContainers);
  format->protocol_whitelist = av_strdup("");
  const int code = avformat_open_input(&format, nullptr, nullptr, nullptr);
  if (spent(&budget)) return over_time();
  if (code < 0) return broken_video(reason(code));
  return {};
}

Status VideoStream::Impl::probe() {
  // Most containers state the size; checking it here gives a precise error.
  for (unsigned i = 0; i < format->nb_streams; ++i) {
    const AVCodecParameters& parameters = *format->streams[i]->codecpar;
    if (parameters.codec_type == AVMEDIA_TYPE_VIDEO && parameters.width > 0 &&
        parameters.height > 0)
      VALORA_CHECK(check_size("video", parameters.width, parameters.height, limits));
  }
  // Probing also decodes frames, so the decoder's limits apply to it.
  AVDictionary* options = nullptr;
  av_dict_set_int(&options, "max_pixels", limits.max_pixels, 0);
  av_dict_set_int(&options, "threads", 1, 0);
  std::vector<AVDictionary*> all(format->nb_streams, nullptr);
  for (AVDictionary*& each : all) av_dict_copy(&each, options, 0);
  av_dict_free(&options);
  const int probed = avformat_find_stream_info(format, all.data());
  for (AVDictionary*& each : all) av_dict_free(&each);
  if (spent(&budget)) return over_time();
  if (probed < 0) return broken_video(reason(probed));
  return {};
}

Status VideoStream::Impl::open_decoder() {
  const AVCodec* codec = nullptr;
  const int index = av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
  if (index < 0 || !codec) return broken_video("the file has no video stream of a known codec");
  stream = format->streams[index];
  for (unsigned i = 0; i < format->nb_streams; ++i)
    if (static_cast<int>(i) != index) format->streams[i]->discard = AVDISCARD_ALL;
  if (stream->codecpar->width <= 0 || stream->codecpar->height <= 0)
    return broken_video("its picture size is unknown or over the limit");
  VALORA_CHECK(check_size("video", stream->codecpar->width, stream->codecpar->height, limits));
  orientation = display_orientation(*stream);

  decoder.reset(avcodec_alloc_context3(codec));
  if (!decoder || avcodec_parameters_to_context(decoder.get(), stream->codecpar) < 0)
    return internal("out of memory for a video decoder");
  decoder->thread_count = 1;
  decoder->max_pixels = limits.max_pixels;
  decoder->pkt_timebase = stream->time_base;
  const int code = avcodec_open2(decoder.get(), codec, nullptr);
  if (code < 0) return broken_video(reason(code));
  return {};
}

Result<bool> VideoStream::Impl::read_packet() {
  while (true) {
    if (spent(&budget)) return over_time();
    av_packet_unref(packet.get());
    if (av_read_frame(format, packet.get()) < 0) return false;
    // To a decoder, an empty packet means the end.
    if (packet->stream_index != stream->index || packet->size <= 0) continue;
    ++packets_read;
    return true;
  }
}

// Sends the stream's next packet, or the end marker. Skips damaged packets, as players do.
Result<bool> VideoStream::Impl::feed_decoder() {
  while (true) {
    VALORA_TRY(more, read_packet());
    if (!more) {
      if (drained) return false;
      drained = true;
      avcodec_send_packet(decoder.get(), nullptr);
      return true;
    }
    const int sent = avcodec_send_packet(decoder.get(), packet.get());
    av_packet_unref(packet.get());
    if (sent >= 0) return true;
  }
}

Error over_limit(std::string message) {
  return {ErrorCode::kPayloadTooLarge, std::move(message), {}};
}

VideoStream::VideoStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VideoStream::~VideoStream() = default;

Result<std::unique_ptr<VideoStream>> VideoStream::open(std::span<const uint8_t> bytes,
                                                       const Limits& limits, DecodeBudget& budget) {
  // libav logs every damaged packet to stderr; the errors returned here are enough.
  static const bool quiet = (av_log_set_level(AV_LOG_QUIET), true);
  (void)quiet;
  auto impl = std::make_unique<Impl>(bytes, limits, budget);
  VALORA_CHECK(impl->open_file());
  VALORA_CHECK(impl->probe());
  VALORA_CHECK(impl->open_decoder());
  return std::unique_ptr<VideoStream>(new VideoStream(std::move(impl)));
}

VideoInfo VideoStream::info() const {
  const AVStream& stream = *impl_->stream;
  VideoInfo info;
  info.frames = std::max<int64_t>(stream.nb_frames, 0);
  // The average, as other readers report it. The other rate that containers give, the lowest that
  // holds all times, is many times as high if frames are not evenly spaced.
  AVRational rate = stream.avg_frame_rate;
  if (rate.num <= 0 || rate.den <= 0)
    rate = av_guess_frame_rate(impl_->format, impl_->stream, nullptr);
  info.fps = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0;
  info.width = stream.codecpar->width;
  info.height = stream.codecpar->height;
  if (impl_->orientation >= 5) std::swap(info.width, info.height);
  return info;
}

double VideoStream::duration() const {
  const AVStream& stream = *impl_->stream;
  if (stream.duration > 0) return double(stream.duration) * av_q2d(stream.time_base);
  return impl_->format->duration > 0 ? double(impl_->format->duration) / AV_TIME_BASE : 0;
}

Result<std::vector<PacketMark>> VideoStream::packets() {
  std::vector<PacketMark> marks;
  while (true) {
    VALORA_TRY(more, impl_->read_packet());
    if (!more) return marks;
    if (marks.size() == kMaxPackets)
      return over_limit(
          fmt::format("the video has more than {} frames: send a shorter clip", kMaxPackets));
    marks.push_back(mark_of(*impl_->packet, impl_->stream->codecpar->codec_id));
  }
}

Result<bool> VideoStream::skip_to(int64_t packet) {
  if (impl_->packets_read >= packet) return false;
  while (impl_->packets_read < packet) {
    VALORA_TRY(more, impl_->read_packet());
    if (!more) break;
  }
  avcodec_flush_buffers(impl_->decoder.get());
  return true;
}

Result<const AVFrame*> VideoStream::next_frame() {
  while (true) {
    const int code = avcodec_receive_frame(impl_->decoder.get(), impl_->frame.get());
    if (code >= 0) {
      DecodeBudget& budget = impl_->budget;
      if (budget.stop.stop_requested()) return stopped_error();
      if (--budget.frames_left < 0)
        return over_limit(
            fmt::format("more than {} frames of the video would be decoded: send a shorter clip",
                        impl_->limits.max_decoded_frames));
      return static_cast<const AVFrame*>(impl_->frame.get());
    }
    if (code == AVERROR_EOF) return static_cast<const AVFrame*>(nullptr);
    VALORA_TRY(more, impl_->feed_decoder());
    if (!more) return static_cast<const AVFrame*>(nullptr);
  }
}

Result<Image> VideoStream::to_rgb(const AVFrame& frame) {
  VALORA_CHECK(check_size("video", frame.width, frame.height, impl_->limits));
  bool full_range = frame.color_range == AVCOL_RANGE_JPEG;
  const AVPixelFormat format = plain_format(static_cast<AVPixelFormat>(frame.format), full_range);
  // Interpolates chroma at full resolution with exact rounding, identical on every CPU. The default
  // is visibly coarser.
  constexpr int kFlags =
      SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_BITEXACT;
  impl_->scaler.reset(sws_getCachedContext(impl_->scaler.release(), frame.width, frame.height,
                                           format, frame.width, frame.height, AV_PIX_FMT_RGB24,
                                           kFlags, nullptr, nullptr, nullptr));
  if (!impl_->scaler) return broken_video("its pixel format is not known");
  // As in other readers, an unspecified matrix means BT.601.
  sws_setColorspaceDetails(impl_->scaler.get(), sws_getCoefficients(frame.colorspace), full_range,
                           sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);

  Image image = blank_image(frame.width, frame.height);
  // swscale's vector code may write past the end of a row, so rows are padded here and packed
  // afterwards.
  const int stride = (frame.width * 3 + 63) / 64 * 64 + 64;
  std::vector<uint8_t> padded(size_t(stride) * frame.height + 64);
  uint8_t* planes[4] = {padded.data()};
  const int strides[4] = {stride};
  if (sws_scale(impl_->scaler.get(), frame.data, frame.linesize, 0, frame.height, planes,
                strides) != frame.height)
    return broken_video("its frames cannot be converted to RGB");
  for (int y = 0; y < frame.height; ++y)
    std::memcpy(&image.rgb[size_t(y) * frame.width * 3], &padded[size_t(y) * stride],
                size_t(frame.width) * 3);
  return upright(std::move(image), impl_->orientation);
}

}  // namespace valora::media
