#include "media/video/libav_video.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "media/fetch/http_stream.h"
#include "media/image/decoders.h"
#include "media/video/libav.h"
#include "media/video/live_decoder.h"
#include "media/video/source_url.h"
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

class LibavVideo final : public LiveVideo {
 public:
  LibavVideo(FetchPolicy policy, const Limits& limits, const Reading& reading, std::stop_token stop)
      : policy_(std::move(policy)), limits_(limits), reading_(reading), stop_(std::move(stop)) {}
  ~LibavVideo() override {
    AVIOContext* own = format_ && (format_->flags & AVFMT_FLAG_CUSTOM_IO) ? format_->pb : nullptr;
    avformat_close_input(&format_);
    if (own) close_io(own);
    av_packet_free(&held_);
  }

  Status open(const std::string& url);
  Result<bool> next() override;
  double time() const override;
  Result<Image> image() override;

 private:
  // An HTTP answer, or a file, as libav reads it.
  struct Input {
    LibavVideo* owner = nullptr;
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
      input.owner->fault_ = got.error();
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
    inputs_[io] = std::move(input);
    return io;
  }

  void close_io(AVIOContext* io) {
    inputs_.erase(io);
    av_freep(&io->buffer);
    avio_context_free(&io);
  }

  Result<AVIOContext*> open_http(const std::string& url) {
    auto input = std::make_unique<Input>();
    input->owner = this;
    VALORA_TRY(http, HttpStream::open(url, policy_, reading_.patience, stop_));
    input->http = std::move(http);
    AVIOContext* io = io_of(std::move(input));
    if (!io) return internal("out of memory for a source");
    return io;
  }

  // Playlists name other URLs: these obey the same rules.
  static int open_named(AVFormatContext* context, AVIOContext** io, const char* url, int flags,
                        AVDictionary**) {
    auto& self = *static_cast<LibavVideo*>(context->opaque);
    if ((flags & AVIO_FLAG_WRITE) || !is_remote(url)) return AVERROR(EACCES);
    const auto opened = self.open_http(url);
    if (!opened.ok()) {
      self.fault_ = opened.error();
      return AVERROR(EACCES);
    }
    *io = *opened;
    return 0;
  }
  static void close_named(AVFormatContext* context, AVIOContext* io) {
    if (io) static_cast<LibavVideo*>(context->opaque)->close_io(io);
  }
  static int close_named_2(AVFormatContext* context, AVIOContext* io) {
    close_named(context, io);
    return 0;
  }

  static int interrupted(void* opaque) {
    const auto& self = *static_cast<const LibavVideo*>(opaque);
    return self.stop_.stop_requested() || steady_clock::now() > self.deadline_;
  }

  Error why(int code) {
    if (stop_.stop_requested()) return stopped_error();
    if (fault_) return *fault_;
    if (steady_clock::now() > deadline_) return silent(reading_.patience);
    return {ErrorCode::kUnavailable, "the source cannot be read: " + libav_reason(code), {}};
  }

  void wait_again() { deadline_ = steady_clock::now() + reading_.patience; }

  Status open_decoder();
  bool receive();

  const FetchPolicy policy_;
  const Limits limits_;
  const Reading reading_;
  const std::stop_token stop_;
  steady_clock::time_point deadline_{};
  std::optional<Error> fault_;  // of an HTTP answer
  std::map<AVIOContext*, std::unique_ptr<Input>> inputs_;
  AVFormatContext* format_ = nullptr;
  AVStream* stream_ = nullptr;
  int orientation_ = 1;
  LiveDecoder decoder_;
  AVPacket* held_ = av_packet_alloc();
  std::unique_ptr<AVFrame, FreeLibav> frame_{av_frame_alloc()};
  RgbConverter converter_;
  std::optional<int64_t> first_;  // timestamp
  bool drained_ = false;
};

Status LibavVideo::open(const std::string& url) {
  format_ = avformat_alloc_context();
  if (!format_ || !held_ || !frame_) return internal("out of memory for a source");
  format_->opaque = this;
  format_->io_open = open_named;
  format_->io_close = close_named;
  format_->io_close2 = close_named_2;
  format_->interrupt_callback = {interrupted, this};
  format_->max_streams = kMostStreams;
  format_->probesize = kProbeBytes;
  format_->max_analyze_duration = kProbeTime;
  format_->format_whitelist = av_strdup(kLiveContainers);
  format_->protocol_whitelist = av_strdup(is_rtsp(url) ? "rtsp,rtp,tcp,tls,udp" : "");
  if (is_remote(url)) {
    VALORA_TRY(io, open_http(url));
    format_->pb = io;
  } else if (is_local_file(url)) {
    auto input = std::make_unique<Input>();
    VALORA_TRY(bytes, fetch(url, MediaKind::kVideo, limits_.max_video_bytes, policy_, stop_));
    input->bytes = std::move(bytes.front());
    format_->pb = io_of(std::move(input));
    if (!format_->pb) return internal("out of memory for a source");
  }
  if (format_->pb) format_->flags |= AVFMT_FLAG_CUSTOM_IO;
  AVDictionary* options = nullptr;
  if (is_rtsp(url)) av_dict_set(&options, "rtsp_transport", "tcp", 0);
  if (is_rtsp(url)) av_dict_set(&options, "allowed_media_types", "video", 0);
  wait_again();
  AVIOContext* own = format_->pb;
  // The URL tells a playlist's relative names their place.
  const int code = avformat_open_input(&format_, url.c_str(), nullptr, &options);
  av_dict_free(&options);
  if (code < 0) {  // libav has freed the context
    const Error error = why(code);
    if (own) close_io(own);
    return error;
  }
  wait_again();
  const int probed = probe_streams(format_, limits_);
  if (probed < 0) return why(probed);
  return open_decoder();
}

Status LibavVideo::open_decoder() {
  const AVCodec* codec = nullptr;
  stream_ = choose_video(format_, &codec);
  if (!stream_)
    return Error{ErrorCode::kUnavailable, "the source has no video of a known codec", {}};
  orientation_ = display_orientation(*stream_);
  LiveDecoder::Settings settings{.device = reading_.device, .alone = reading_.key_frames_only};
  if (format_->flags & AVFMT_FLAG_CUSTOM_IO && !inputs_[format_->pb]->http)
    settings.most_kept_bytes = limits_.max_video_bytes;  // a file, which must not begin anew
  const int code = decoder_.open(codec, *stream_, limits_, std::move(settings));
  if (code < 0) return why(code);
  return {};
}

bool LibavVideo::receive() {
  if (!decoder_.receive(frame_.get())) return false;
  const int64_t at = frame_->best_effort_timestamp;
  if (!first_ && at != AV_NOPTS_VALUE) first_ = at;
  return true;
}

Result<bool> LibavVideo::next() {
  wait_again();
  while (true) {
    if (receive()) return true;
    if (decoder_.lost())
      return Error{ErrorCode::kUnavailable, "the device that decoded the source has failed", {}};
    if (drained_) return false;
    av_packet_unref(held_);
    const int code = av_read_frame(format_, held_);
    if (code == AVERROR(EAGAIN)) continue;
    if (stop_.stop_requested()) return stopped_error();
    if (code < 0) {
      if (code != AVERROR_EOF || fault_) return why(code);
      drained_ = true;
      decoder_.send(nullptr);
      continue;
    }
    if (held_->stream_index != stream_->index || held_->size <= 0) continue;
    wait_again();
    if (!reading_.key_frames_only || (held_->flags & AV_PKT_FLAG_KEY)) decoder_.send(held_);
  }
}

Result<Image> LibavVideo::image() {
  const AVFrame* frame = decoder_.in_memory(*frame_);
  if (!frame) {
    VALORA_TRY(more, next());
    if (!more) return Error{ErrorCode::kUnavailable, "the source has ended", {}};
    frame = frame_.get();
  }
  return converter_.to_rgb(*frame, orientation_, limits_);
}

double LibavVideo::time() const {
  const int64_t at = frame_->best_effort_timestamp;
  if (at == AV_NOPTS_VALUE || !first_) return 0;
  return static_cast<double>(at - *first_) * av_q2d(stream_->time_base);
}

}  // namespace

Result<std::unique_ptr<LiveVideo>> open_libav_video(const std::string& url,
                                                    const FetchPolicy& policy, const Limits& limits,
                                                    const LiveVideo::Reading& reading,
                                                    std::stop_token stop) {
  silence_libav();
  auto video = std::make_unique<LibavVideo>(policy, limits, reading, std::move(stop));
  VALORA_CHECK(video->open(url));
  return std::unique_ptr<LiveVideo>(std::move(video));
}

}  // namespace valora::media
