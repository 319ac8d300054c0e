// Short clips for the unit tests, encoded by libav into memory.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/opt.h>
}

#include "media/fetch/fetch.h"

namespace valora::media::testing {

// One frame per grey level, each with a white square of 16 pixels in its top left corner.
struct Clip {
  const char* container = "avi";
  const char* codec = "ffv1";  // lossless
  AVPixelFormat format = AV_PIX_FMT_0RGB32;
  int width = 64;
  int height = 48;
  int frame_rate = 10;
  int clockwise_rotation = 0;  // in degrees, applied by the player
  std::vector<uint8_t> levels;
  int key_interval = 12;            // at most so many frames from one key frame to the next
  int b_frames = 0;                 // at most so many in a row
  std::vector<int64_t> times = {};  // of the frames, in units of 1 / frame_rate; empty: 0, 1, 2, …
  bool every_packet_key = false;    // the container's marks are wrong
};

namespace clips_detail {

inline void require(bool ok) {
  if (!ok) std::abort();
}

inline void drain(AVCodecContext* encoder, AVFormatContext* file, AVStream* stream,
                  AVPacket* packet, const Clip& clip) {
  while (avcodec_receive_packet(encoder, packet) >= 0) {
    packet->duration = 1;
    if (clip.every_packet_key) packet->flags |= AV_PKT_FLAG_KEY;
    av_packet_rescale_ts(packet, encoder->time_base, stream->time_base);
    packet->stream_index = stream->index;
    require(av_interleaved_write_frame(file, packet) >= 0);
  }
}

inline uint8_t limited_range(int level) {
  return static_cast<uint8_t>(16 + (level * 219 + 127) / 255);
}

inline void paint(AVFrame* frame, int level) {
  const bool packed = frame->format == AV_PIX_FMT_0RGB32;
  const bool limited = frame->format == AV_PIX_FMT_YUV420P;
  for (int y = 0; y < frame->height; ++y)
    for (int x = 0; x < frame->width; ++x) {
      const int grey = x < 16 && y < 16 ? 255 : level;
      const uint8_t value = limited ? limited_range(grey) : static_cast<uint8_t>(grey);
      if (packed)
        std::fill_n(frame->data[0] + y * frame->linesize[0] + x * 4, 4, value);
      else
        frame->data[0][y * frame->linesize[0] + x] = value;
    }
  for (int plane = 1; plane < 3 && !packed; ++plane)
    for (int y = 0; y < (frame->height + 1) / 2; ++y)
      std::fill_n(frame->data[plane] + y * frame->linesize[plane], (frame->width + 1) / 2,
                  uint8_t{128});
}

// A seekable in-memory file: libav's dynamic buffer would lose the AVI muxer's final rewrites.
struct MemoryWriter {
  Bytes bytes;
  size_t at = 0;

  static int write(void* opaque, uint8_t* data, int count) {
    auto& self = *static_cast<MemoryWriter*>(opaque);
    self.bytes.resize(std::max(self.bytes.size(), self.at + count));
    std::copy_n(data, count, self.bytes.begin() + self.at);
    self.at += count;
    return count;
  }
  static int64_t seek(void* opaque, int64_t offset, int whence) {
    auto& self = *static_cast<MemoryWriter*>(opaque);
    if (whence & AVSEEK_SIZE) return int64_t(self.bytes.size());
    const int64_t base = whence == SEEK_SET   ? 0
                         : whence == SEEK_CUR ? int64_t(self.at)
                                              : int64_t(self.bytes.size());
    return int64_t(self.at = size_t(base + offset));
  }
};

inline void open_file(AVFormatContext* file, MemoryWriter& writer) {
  constexpr int kBuffer = 4096;
  file->pb = avio_alloc_context(static_cast<uint8_t*>(av_malloc(kBuffer)), kBuffer, 1, &writer,
                                nullptr, MemoryWriter::write, MemoryWriter::seek);
  require(avformat_write_header(file, nullptr) >= 0);
}

inline Bytes close_file(AVFormatContext* file, MemoryWriter& writer) {
  require(av_write_trailer(file) >= 0);
  avio_flush(file->pb);
  av_freep(&file->pb->buffer);
  avio_context_free(&file->pb);
  avformat_free_context(file);
  return std::move(writer.bytes);
}

}  // namespace clips_detail

inline Bytes encode_clip(const Clip& clip) {
  using namespace clips_detail;
  av_log_set_level(AV_LOG_QUIET);
  AVFormatContext* file = nullptr;
  require(avformat_alloc_output_context2(&file, nullptr, clip.container, nullptr) >= 0);
  const AVCodec* codec = avcodec_find_encoder_by_name(clip.codec);
  require(codec != nullptr);
  AVCodecContext* encoder = avcodec_alloc_context3(codec);
  encoder->width = clip.width;
  encoder->height = clip.height;
  encoder->pix_fmt = clip.format;
  encoder->time_base = {1, clip.frame_rate};
  encoder->framerate = {clip.frame_rate, 1};
  encoder->bit_rate = 2'000'000;
  encoder->gop_size = clip.key_interval;
  encoder->max_b_frames = clip.b_frames;
  if (clip.format == AV_PIX_FMT_YUVJ420P) encoder->color_range = AVCOL_RANGE_JPEG;
  if (file->oformat->flags & AVFMT_GLOBALHEADER) encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  require(avcodec_open2(encoder, codec, nullptr) >= 0);
  AVStream* stream = avformat_new_stream(file, nullptr);
  require(avcodec_parameters_from_context(stream->codecpar, encoder) >= 0);
  stream->time_base = encoder->time_base;
  stream->avg_frame_rate = encoder->framerate;
  if (clip.clockwise_rotation != 0) {
    uint8_t* matrix =
        av_stream_new_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, 9 * sizeof(int32_t));
    av_display_rotation_set(reinterpret_cast<int32_t*>(matrix), clip.clockwise_rotation);
  }
  MemoryWriter writer;
  open_file(file, writer);

  AVPacket* packet = av_packet_alloc();
  AVFrame* frame = av_frame_alloc();
  frame->width = clip.width;
  frame->height = clip.height;
  frame->format = clip.format;
  require(av_frame_get_buffer(frame, 0) >= 0);
  for (size_t i = 0; i < clip.levels.size(); ++i) {
    require(av_frame_make_writable(frame) >= 0);
    paint(frame, clip.levels[i]);
    frame->pts = clip.times.empty() ? int64_t(i) : clip.times[i];
    require(avcodec_send_frame(encoder, frame) >= 0);
    drain(encoder, file, stream, packet, clip);
  }
  avcodec_send_frame(encoder, nullptr);
  drain(encoder, file, stream, packet, clip);
  av_frame_free(&frame);
  av_packet_free(&packet);
  avcodec_free_context(&encoder);
  return close_file(file, writer);
}

// An AVI with one second of silence and no video stream.
inline Bytes encode_silence() {
  using namespace clips_detail;
  AVFormatContext* file = nullptr;
  require(avformat_alloc_output_context2(&file, nullptr, "avi", nullptr) >= 0);
  AVStream* stream = avformat_new_stream(file, nullptr);
  stream->codecpar->codec_type = AVMEDIA_TYPE_AUDIO;
  stream->codecpar->codec_id = AV_CODEC_ID_PCM_S16LE;
  stream->codecpar->sample_rate = 8000;
  stream->codecpar->format = AV_SAMPLE_FMT_S16;
  stream->codecpar->block_align = 2;
  av_channel_layout_default(&stream->codecpar->ch_layout, 1);
  stream->time_base = {1, 8000};
  MemoryWriter writer;
  open_file(file, writer);
  AVPacket* packet = av_packet_alloc();
  require(av_new_packet(packet, 16000) >= 0);
  std::fill_n(packet->data, packet->size, uint8_t{0});
  packet->duration = 8000;
  packet->pts = packet->dts = 0;
  require(av_interleaved_write_frame(file, packet) >= 0);
  av_packet_free(&packet);
  return close_file(file, writer);
}

// Returns the clip's path in the folder.
inline std::string write_clip(const Clip& clip, const std::string& folder) {
  const std::string path = folder + "/clip";
  const Bytes bytes = encode_clip(clip);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<int64_t>(bytes.size()));
  return path;
}

}  // namespace valora::media::testing
