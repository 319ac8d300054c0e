#include "media/video/live_decoder.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace valora::media {
namespace {

// Frames outside the decoder: one that is looked at, and one that comes.
constexpr int kFramesOutside = 2;
// A device that gives no frame for so many packets, the first a key frame, gives none.
constexpr int kMostFruitless = 64, kMostFruitlessAlone = 4;

// Damaged packets are the stream's fault, not the device's.
bool device_fault(int code) {
  return code < 0 && code != AVERROR(EAGAIN) && code != AVERROR_EOF && code != AVERROR_INVALIDDATA;
}

}  // namespace

int LiveDecoder::open(const AVCodec* codec, const AVStream& stream, const Limits& limits,
                      Settings settings) {
  software_ = codec;
  stream_ = &stream;
  limits_ = limits;
  settings_ = std::move(settings);
  if (settings_.device) {
    memory_.reset(av_frame_alloc());
    hardware_ = settings_.device->codec_for(*codec);
    if (!hardware_) tell("has no decoder for it");
  }
  if (hardware_) {
    const int code = memory_ ? open_decoder(hardware_->codec, true) : AVERROR(ENOMEM);
    if (code >= 0) return code;
    tell(libav_reason(code));
    hardware_.reset();
  }
  return open_decoder(software_, false);
}

int LiveDecoder::open_decoder(const AVCodec* codec, bool on_device) {
  decoder_ = make_decoder(codec, *stream_, limits_);
  if (!decoder_) return AVERROR(ENOMEM);
  if (on_device) {
    decoder_->opaque = this;
    decoder_->get_format = get_format;
    decoder_->extra_hw_frames = kFramesOutside;
    if (const AVBufferRef* context = settings_.device->context()) {
      decoder_->hw_device_ctx = av_buffer_ref(context);
      if (!decoder_->hw_device_ctx) return AVERROR(ENOMEM);
    }
  }
  return avcodec_open2(decoder_.get(), codec, nullptr);
}

// libav asks again, without the device's format, if that cannot be set up.
AVPixelFormat LiveDecoder::get_format(AVCodecContext* context, const AVPixelFormat* offered) {
  auto& self = *static_cast<LiveDecoder*>(context->opaque);
  const AVPixelFormat chosen = choose_format(offered, self.hardware_->format);
  if (chosen != self.hardware_->format) self.tell("does not decode it");
  return chosen;
}

void LiveDecoder::tell(std::string_view what) {
  if (std::exchange(told_, true)) return;
  const AVCodecParameters& video = *stream_->codecpar;
  const bool sized = decoder_ && decoder_->width > 0;  // the size may change
  const char* profile = avcodec_profile_name(video.codec_id, video.profile);
  spdlog::warn("a stream of {}{}{}, {} x {}, is decoded in software: {}: {}",
               avcodec_get_name(video.codec_id), profile ? " " : "", profile ? profile : "",
               sized ? decoder_->width : video.width, sized ? decoder_->height : video.height,
               settings_.device->name(), what);
}

int LiveDecoder::decode(const AVPacket* packet) {
  if (!packet || !settings_.alone) return avcodec_send_packet(decoder_.get(), packet);
  // A decoder holds frames back that others may come before; nothing comes before a key frame.
  avcodec_flush_buffers(decoder_.get());
  const int code = avcodec_send_packet(decoder_.get(), packet);
  (void)avcodec_send_packet(decoder_.get(), nullptr);
  return code;
}

void LiveDecoder::forget() {
  kept_.clear();
  kept_bytes_ = 0;
}

void LiveDecoder::keep(const AVPacket* packet) {
  const bool key = packet && (packet->flags & AV_PKT_FLAG_KEY);
  if (key && (overflown_ || packet->pts == AV_NOPTS_VALUE)) forget();
  overflown_ = overflown_ && !key;
  if (overflown_ || (!key && kept_.empty())) return;
  Packet copy(packet ? av_packet_clone(packet) : nullptr);
  kept_bytes_ += packet ? packet->size : 0;
  kept_.push_back(std::move(copy));
  overflown_ = (packet && !kept_.back()) || kept_bytes_ > settings_.most_kept_bytes;
  if (overflown_) forget();
}

// Decoders hold frames back, so a key frame's packet comes before the last frames that need the
// packets in front of it.
void LiveDecoder::forget_before(int64_t frame) {
  size_t first = 0;
  for (size_t i = 1; i < kept_.size(); ++i)
    if (kept_[i] && (kept_[i]->flags & AV_PKT_FLAG_KEY) && kept_[i]->pts <= frame) first = i;
  for (; first > 0; --first) {
    kept_bytes_ -= kept_.front()->size;
    kept_.pop_front();
  }
}

void LiveDecoder::send(const AVPacket* packet) {
  if (lost_) return;
  if (hardware_) keep(packet);
  const int code = decode(packet);
  if (!hardware_) return;
  if (!kept_.empty() || overflown_) ++fruitless_;
  if (device_fault(code))
    fall_back(libav_reason(code), false);
  else if (fruitless_ > (settings_.alone ? kMostFruitlessAlone : kMostFruitless))
    fall_back("it gives no frames", false);
}

bool LiveDecoder::given(const AVFrame& frame) {
  if (repeated_ == 0) return false;
  const int64_t at = frame.best_effort_timestamp;
  if (at != AV_NOPTS_VALUE && earliest_ != AV_NOPTS_VALUE && at < earliest_) {
    --repeated_;
    return true;
  }
  repeated_ = 0;
  return false;
}

bool LiveDecoder::receive(AVFrame* frame) {
  while (!lost_) {
    const int code = avcodec_receive_frame(decoder_.get(), frame);
    if (code >= 0) {
      if (given(*frame)) continue;
      fruitless_ = 0;
      last_ = frame->best_effort_timestamp;
      if (hardware_ && last_ != AV_NOPTS_VALUE) forget_before(last_);
      return true;
    }
    if (hardware_ && device_fault(code)) {
      fall_back(libav_reason(code), false);
    } else {
      if (pending_.empty()) return false;
      const Packet packet = std::move(pending_.front());
      pending_.pop_front();
      (void)decode(packet.get());
    }
  }
  return false;
}

const AVFrame* LiveDecoder::in_memory(const AVFrame& frame) {
  if (!frame.hw_frames_ctx) return &frame;
  av_frame_unref(memory_.get());
  int code = av_hwframe_transfer_data(memory_.get(), &frame, 0);
  if (code >= 0) code = av_frame_copy_props(memory_.get(), &frame);
  if (code >= 0) return memory_.get();
  fall_back(libav_reason(code), true);
  return nullptr;
}

void LiveDecoder::fall_back(std::string_view why, bool again) {
  if (!hardware_) {  // a frame that is left over from the device
    lost_ = true;
    return;
  }
  tell(why);
  hardware_.reset();
  pending_ = std::move(kept_);
  repeated_ = pending_.size();
  earliest_ = last_ == AV_NOPTS_VALUE || again ? last_ : last_ + 1;
  lost_ = overflown_ || open_decoder(software_, false) < 0;
}

}  // namespace valora::media
