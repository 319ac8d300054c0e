// Decodes the packets of a live stream: on a device, as long as it can, else in software.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string_view>

#include "media/video/hardware_device.h"
#include "media/video/libav.h"

namespace valora::media {

class LiveDecoder {
 public:
  struct Settings {
    std::shared_ptr<const HardwareDevice> device;  // null: software
    // Each packet is a key frame that is decoded without the others.
    bool alone = false;
    // Of the packets since the last key frame, which software decodes anew if the device fails.
    size_t most_kept_bytes = size_t{32} << 20;
  };

  LiveDecoder() = default;
  LiveDecoder(const LiveDecoder&) = delete;
  LiveDecoder& operator=(const LiveDecoder&) = delete;

  // codec: the one that decodes in software. The stream must outlive this object. Returns libav's
  // code.
  int open(const AVCodec* codec, const AVStream& stream, const Limits& limits, Settings settings);
  // Null: the last packet has been sent. Packets that cannot be decoded are passed over.
  void send(const AVPacket* packet);
  // The next frame, in memory or on the device. False: it needs more packets.
  bool receive(AVFrame* frame);
  // The frame that receive() gave, or a copy of it if it is on the device. Null: the device does
  // not give it, and receive() gives it again, decoded in software.
  const AVFrame* in_memory(const AVFrame& frame);
  // Goes on in software. With `again`, from the frame that receive() gave last, else behind it.
  void fall_back(std::string_view why, bool again);
  // The device has failed, and software cannot go on from here.
  bool lost() const { return lost_; }

 private:
  using Packet = std::unique_ptr<AVPacket, FreeLibav>;

  static AVPixelFormat get_format(AVCodecContext* context, const AVPixelFormat* offered);
  int open_decoder(const AVCodec* codec, bool on_device);
  int decode(const AVPacket* packet);
  void keep(const AVPacket* packet);
  void forget();
  void forget_before(int64_t frame);
  bool given(const AVFrame& frame);
  void tell(std::string_view what);

  Settings settings_;
  const AVCodec* software_ = nullptr;
  const AVStream* stream_ = nullptr;
  Limits limits_;
  std::optional<HardwareCodec> hardware_;  // absent: in software
  std::unique_ptr<AVCodecContext, FreeLibav> decoder_;
  std::unique_ptr<AVFrame, FreeLibav> memory_;
  // The packets from the key frame on that the last frame needs, null at the end; and those that
  // software decodes again.
  std::deque<Packet> kept_, pending_;
  size_t kept_bytes_ = 0;
  bool overflown_ = false, lost_ = false, told_ = false;
  int fruitless_ = 0;  // packets since the last frame
  int64_t last_ = AV_NOPTS_VALUE;
  // Frames before this time have been given; at most so many are left out.
  int64_t earliest_ = AV_NOPTS_VALUE;
  size_t repeated_ = 0;
};

}  // namespace valora::media
