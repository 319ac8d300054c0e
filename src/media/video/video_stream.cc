#include "media/video/video_stream.h"

#include <algorithm>

#include <fmt/format.h>

#include "media/fetch/memory_file.h"
#include "media/image/decoders.h"
#include "media/video/libav.h"
#include "media/video/stop.h"

namespace valora::media {
namespace {

// Demuxers of plain container files. Playlists and scripts (hls, dash, concat, …) are excluded
// because they refer to other files.
constexpr char kContainers[] =
    "mov,matroska,avi,mpegts,mpeg,mpegvideo,m4v,h264,hevc,flv,ogg,asf,ivf,gif,mjpeg,nut";
constexpr int kIoBuffer = 64 << 10;
constexpr int kMaxStreams = 64;

// A file of this many packets lasts ten hours.
constexpr size_t kMaxPackets = size_t{1} << 21;

int refuse_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return AVERROR(EACCES);
}

int spent(void* opaque) {
  const auto& budget = *static_cast<const DecodeBudget*>(opaque);
  return budget.stop.stop_requested() || std::chrono::steady_clock::now() > budget.deadline;
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
  std::unique_ptr<AVCodecContext, FreeLibav> decoder;
  std::unique_ptr<AVPacket, FreeLibav> packet{av_packet_alloc()};
  std::unique_ptr<AVFrame, FreeLibav> frame{av_frame_alloc()};
  RgbConverter converter;
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
  if (code < 0) return broken_video(libav_reason(code));
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
  const int probed = probe_streams(format, limits);
  if (spent(&budget)) return over_time();
  if (probed < 0) return broken_video(libav_reason(probed));
  return {};
}

Status VideoStream::Impl::open_decoder() {
  const AVCodec* codec = nullptr;
  stream = choose_video(format, &codec);
  if (!stream) return broken_video("the file has no video stream of a known codec");
  if (stream->codecpar->width <= 0 || stream->codecpar->height <= 0)
    return broken_video("its picture size is unknown or over the limit");
  VALORA_CHECK(check_size("video", stream->codecpar->width, stream->codecpar->height, limits));
  orientation = display_orientation(*stream);

  decoder = make_decoder(codec, *stream, limits);
  if (!decoder) return internal("out of memory for a video decoder");
  const int code = avcodec_open2(decoder.get(), codec, nullptr);
  if (code < 0) return broken_video(libav_reason(code));
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
  silence_libav();
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
  return impl_->converter.to_rgb(frame, impl_->orientation, impl_->limits);
}

}  // namespace valora::media
