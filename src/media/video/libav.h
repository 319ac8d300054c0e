// What all readers of videos need of libav: owners, messages and upright RGB frames.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "media/image/image.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

namespace valora::media {

struct FreeLibav {
  void operator()(AVFrame* p) const { av_frame_free(&p); }
  void operator()(AVPacket* p) const { av_packet_free(&p); }
  void operator()(AVCodecContext* p) const { avcodec_free_context(&p); }
  void operator()(SwsContext* p) const { sws_freeContext(p); }
};

// libav logs every damaged packet to stderr; returned errors are enough.
void silence_libav();
std::string libav_reason(int code);
Error broken_video(std::string_view why);
// The EXIF orientation equivalent to the quarter turns that a player applies.
int display_orientation(const AVStream& stream);

// avformat_find_stream_info() with the decoders' limits, because probing decodes frames, too.
int probe_streams(AVFormatContext* format, const Limits& limits);
// The stream with the video, and its codec; the others are discarded. Null: there is none of a
// known codec.
AVStream* choose_video(AVFormatContext* format, const AVCodec** codec);
// A decoder of one thread within the limits, which avcodec_open2() opens. Null: out of memory.
std::unique_ptr<AVCodecContext, FreeLibav> make_decoder(const AVCodec* codec,
                                                        const AVStream& stream,
                                                        const Limits& limits);

// Keeps its tables from one frame to the next of the same size.
class RgbConverter {
 public:
  // The frame as upright RGB.
  Result<Image> to_rgb(const AVFrame& frame, int orientation, const Limits& limits);

 private:
  std::unique_ptr<SwsContext, FreeLibav> scaler_;
};

}  // namespace valora::media
