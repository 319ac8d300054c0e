#include "media/video/live_video.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "media/fetch/fetchers.h"
#include "media/fetch/http_rules.h"
#include "media/fetch/http_stream.h"
#include "media/image/decoders.h"
#include "media/video/libav.h"
#include "media/video/stop.h"

namespace valora::media {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kBuffer = 64 << 10, kMostStreams = 64;
constexpr char kLiveContainers[] =
    "rtsp,hls,mpjpeg,mjpeg,mpegts,mov,matroska,flv,avi,nut,ogg,h264,hevc,ivf,image2pipe,jpeg_pipe";
constexpr int64_t kProbeBytes = 1 << 20;
constexpr int64_t kProbeTime = 3'000'000;  // microseconds of the stream

Error silent(milliseconds patience) {
  return {ErrorCode::kUnavailable,
          fmt::format("the source has sent nothing for {} s", patience.count() / 1000.0),
          {}};
}

bool is_http(const std::string& url) {
  return url.starts_with("http://") || url.starts_with("https://");
}
bool is_rtsp(const std::string& url) {
  return url.starts_with("rtsp://") || url.starts_with("rtsps://");
}
bool is_local_file(const std::string& url) { return url.starts_with("file:"); }

}  // namespace

Status check_live_url(const std::string& url, const FetchPolicy& policy) {
  if (is_local_file(url)) {
    if (policy.allowed_local_path.empty())
      return invalid("files are off: set --allowed-local-media-path to allow them", "source");
    return {};
  }
  if (!is_http(url) && !is_rtsp(url))
    return invalid("the source must begin with rtsp://, rtsps://, http://, https:// or file://",
                   "source");
  if (!policy.allow_http)
    return invalid("sources from the network are off: set --allow-media-urls to allow them",
                   "source");
  // libav resolves an RTSP host itself, so its address cannot be checked when it is used.
  if (is_rtsp(url) && public_only(policy))
    return invalid("RTSP needs the camera's host in --allowed-media-domains", "source");
  Status host = check_host(url, policy);
  if (!host.ok()) return invalid(host.error().message, "source");
  return {};
}

struct LiveVideo::Impl {
  Impl(FetchPolicy policy, const Limits& limits, milliseconds patience, std::stop_token stop)
      : policy(std::move(policy)), limits(limits), patience(patience), stop(std::move(stop)) {}
  ~Impl() {
    decoder.reset();
    AVIOContext* own = format && (format->flags & AVFMT_FLAG_CUSTOM_IO) ? format->pb : nullptr;
    avformat_close_input(&format);
    if (own) close_io(own);
    av_packet_free(&held);
  }

  // An HTTP answer, or a file, as libav reads it.
  struct Input {
    Impl* owner = nullptr;
    std::unique_ptr<HttpStream> http;
    Bytes bytes;
    size_t at = 0;
  };

  static int read_input(void* opaque, uint8_t* out, int count) {
    auto& input = *static_cast<Input*>(opaque);
    if (!input.http) {
      const size_t size = std::min<size_t>(count, input.bytes.size() - input.at);
      if (size == 0) return AVERROR_EOF;
      std::memcpy(out, input.bytes.data() + input.at, size);
      input.at += size;
      return static_cast<int>(size);
    }
    const auto got = input.http->read({out, static_cast<size_t>(count)});
    if (!got.ok()) {
      input.owner->fault = got.error();
      return AVERROR_EXIT;
    }
    return *got == 0 ? AVERROR_EOF : static_cast<int>(*got);
  }

  static int64_t seek_input(void* opaque, int64_t offset, int whence) {
    auto& input = *static_cast<Input*>(opaque);
    const auto size = static_cast<int64_t>(input.bytes.size());
    if ((whence & ~AVSEEK_FORCE) == AVSEEK_SIZE) return size;
    const int64_t from = whence == SEEK_CUR   ? static_cast<int64_t>(input.at)
                         : whence == SEEK_END ? size
                                              : 0;
    if (from + offset < 0 || from + offset > size) return AVERROR(EINVAL);
    input.at = static_cast<size_t>(from + offset);
    return from + offset;
  }

  AVIOContext* io_of(std::unique_ptr<Input> input) {
    auto* buffer = static_cast<uint8_t*>(av_malloc(kBuffer));
    if (!buffer) return nullptr;
    const bool seekable = !input->http;
    AVIOContext* io = avio_alloc_context(buffer, kBuffer, 0, input.get(), read_input, nullptr,
                                         seekable ? seek_input : nullptr);
    if (!io) {
      av_free(buffer);
      return nullptr;
    }
    io->seekable = seekable ? AVIO_SEEKABLE_NORMAL : 0;
    inputs[io] = std::move(input);
    return io;
  }

  void close_io(AVIOContext* io) {
    inputs.erase(io);
    av_freep(&io->buffer);
    avio_context_free(&io);
  }

  Result<AVIOContext*> open_http(const std::string& url) {
    auto input = std::make_unique<Input>();
    input->owner = this;
    VALORA_TRY(http, HttpStream::open(url, policy, patience, stop));
    input->http = std::move(http);
    AVIOContext* io = io_of(std::move(input));
    if (!io) return internal("out of memory for a source");
    return io;
  }

  // Playlists name other URLs: these obey the same rules.
  static int open_named(AVFormatContext* context, AVIOContext** io, const char* url, int flags,
                        AVDictionary**) {
    auto& self = *static_cast<Impl*>(context->opaque);
    if ((flags & AVIO_FLAG_WRITE) || !is_http(url)) return AVERROR(EACCES);
    const auto opened = self.open_http(url);
    if (!opened.ok()) {
      self.fault = opened.error();
      return AVERROR(EACCES);
    }
    *io = *opened;
    return 0;
  }
  static void close_named(AVFormatContext* context, AVIOContext* io) {
    if (io) static_cast<Impl*>(context->opaque)->close_io(io);
  }
  static int close_named_2(AVFormatContext* context, AVIOContext* io) {
    close_named(context, io);
    return 0;
  }

  static int interrupted(void* opaque) {
    const auto& self = *static_cast<const Impl*>(opaque);
    return self.stop.stop_requested() || steady_clock::now() > self.deadline;
  }

  Error why(int code) {
    if (stop.stop_requested()) return stopped_error();
    if (fault) return *fault;
    if (steady_clock::now() > deadline) return silent(patience);
    return {ErrorCode::kUnavailable, "the source cannot be read: " + libav_reason(code), {}};
  }

  void wait_again() { deadline = steady_clock::now() + patience; }

  Status open(const std::string& url);
  Status open_decoder();
  bool receive();

  const FetchPolicy policy;
  const Limits limits;
  const milliseconds patience;
  const std::stop_token stop;
  steady_clock::time_point deadline{};
  std::optional<Error> fault;  // of an HTTP answer
  std::map<AVIOContext*, std::unique_ptr<Input>> inputs;
  AVFormatContext* format = nullptr;
  AVStream* stream = nullptr;
  int orientation = 1;
  std::unique_ptr<AVCodecContext, FreeLibav> decoder;
  AVPacket* held = av_packet_alloc();
  std::unique_ptr<AVFrame, FreeLibav> frame{av_frame_alloc()};
  RgbConverter converter;
  std::optional<int64_t> first;  // timestamp
  bool drained = false;
};

Status LiveVideo::Impl::open(const std::string& url) {
  format = avformat_alloc_context();
  if (!format || !held || !frame) return internal("out of memory for a source");
  format->opaque = this;
  format->io_open = open_named;
  format->io_close = close_named;
  format->io_close2 = close_named_2;
  format->interrupt_callback = {interrupted, this};
  format->max_streams = kMostStreams;
  format->probesize = kProbeBytes;
  format->max_analyze_duration = kProbeTime;
  format->format_whitelist = av_strdup(kLiveContainers);
  format->protocol_whitelist = av_strdup(is_rtsp(url) ? "rtsp,rtp,tcp,tls,udp" : "");
  if (is_http(url)) {
    VALORA_TRY(io, open_http(url));
    format->pb = io;
  } else if (is_local_file(url)) {
    auto input = std::make_unique<Input>();
    VALORA_TRY(bytes, fetch(url, MediaKind::kVideo, limits.max_video_bytes, policy, stop));
    input->bytes = std::move(bytes.front());
    format->pb = io_of(std::move(input));
    if (!format->pb) return internal("out of memory for a source");
  }
  if (format->pb) format->flags |= AVFMT_FLAG_CUSTOM_IO;
  AVDictionary* options = nullptr;
  if (is_rtsp(url)) av_dict_set(&options, "rtsp_transport", "tcp", 0);
  if (is_rtsp(url)) av_dict_set(&options, "allowed_media_types", "video", 0);
  wait_again();
  AVIOContext* own = format->pb;
  // The URL tells a playlist's relative names their place.
  const int code = avformat_open_input(&format, url.c_str(), nullptr, &options);
  av_dict_free(&options);
  if (code < 0) {  // libav has freed the context
    const Error error = why(code);
    if (own) close_io(own);
    return error;
  }
  wait_again();
  const int probed = probe_streams(format, limits);
  if (probed < 0) return why(probed);
  return open_decoder();
}

Status LiveVideo::Impl::open_decoder() {
  const AVCodec* codec = nullptr;
  stream = choose_video(format, &codec);
  if (!stream)
    return Error{ErrorCode::kUnavailable, "the source has no video of a known codec", {}};
  orientation = display_orientation(*stream);
  decoder = make_decoder(codec, *stream, limits);
  if (!decoder) return internal("out of memory for a video decoder");
  const int code = avcodec_open2(decoder.get(), codec, nullptr);
  if (code < 0) return why(code);
  return {};
}

bool LiveVideo::Impl::receive() {
  if (avcodec_receive_frame(decoder.get(), frame.get()) < 0) return false;
  const int64_t at = frame->best_effort_timestamp;
  if (!first && at != AV_NOPTS_VALUE) first = at;
  return true;
}

LiveVideo::LiveVideo(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LiveVideo::~LiveVideo() = default;

Result<std::unique_ptr<LiveVideo>> LiveVideo::open(const std::string& url,
                                                   const FetchPolicy& policy, const Limits& limits,
                                                   milliseconds patience, std::stop_token stop) {
  silence_libav();
  VALORA_CHECK(check_live_url(url, policy));
  auto impl = std::make_unique<Impl>(policy, limits, patience, std::move(stop));
  VALORA_CHECK(impl->open(url));
  return std::unique_ptr<LiveVideo>(new LiveVideo(std::move(impl)));
}

Result<bool> LiveVideo::next() {
  Impl& self = *impl_;
  self.wait_again();
  while (true) {
    if (self.receive()) return true;
    if (self.drained) return false;
    av_packet_unref(self.held);
    const int code = av_read_frame(self.format, self.held);
    if (code == AVERROR(EAGAIN)) continue;
    if (self.stop.stop_requested()) return stopped_error();
    if (code < 0) {
      if (code != AVERROR_EOF || self.fault) return self.why(code);
      self.drained = true;
      avcodec_send_packet(self.decoder.get(), nullptr);
      continue;
    }
    if (self.held->stream_index != self.stream->index || self.held->size <= 0) continue;
    self.wait_again();
    (void)avcodec_send_packet(self.decoder.get(), self.held);
  }
}

double LiveVideo::time() const {
  const int64_t at = impl_->frame->best_effort_timestamp;
  if (at == AV_NOPTS_VALUE || !impl_->first) return 0;
  return static_cast<double>(at - *impl_->first) * av_q2d(impl_->stream->time_base);
}

Result<Image> LiveVideo::image() {
  return impl_->converter.to_rgb(*impl_->frame, impl_->orientation, impl_->limits);
}

}  // namespace valora::media
