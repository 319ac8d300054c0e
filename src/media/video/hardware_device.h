// A device of this machine that decodes videos, through libav.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "media/video/libav.h"

extern "C" {
#include <libavutil/hwcontext.h>
}

namespace valora::media {

// A codec that decodes on a device, and the pixel format of the frames that stay there.
struct HardwareCodec {
  const AVCodec* codec;
  AVPixelFormat format;
};

// May be used by several threads at a time.
class HardwareDevice {
 public:
  // kUnavailable, with libav's reason. An empty device is libav's choice.
  static Result<std::shared_ptr<const HardwareDevice>> open(AVHWDeviceType type,
                                                            const std::string& device);
  // Takes the reference. Null: a device on which nothing can be decoded.
  HardwareDevice(AVHWDeviceType type, AVBufferRef* context) : type_(type), context_(context) {}
  ~HardwareDevice() { av_buffer_unref(&context_); }
  HardwareDevice(const HardwareDevice&) = delete;
  HardwareDevice& operator=(const HardwareDevice&) = delete;

  std::string name() const { return av_hwdevice_get_type_name(type_); }
  const AVBufferRef* context() const { return context_; }
  // For videos that `usual` decodes in software. Absent if there is none for the device.
  std::optional<HardwareCodec> codec_for(const AVCodec& usual) const;

 private:
  const AVHWDeviceType type_;
  AVBufferRef* context_;
};

// The types that some decoder of this libav uses, in libav's order.
std::vector<AVHWDeviceType> hardware_types();

// What a decoder that offers these formats (up to AV_PIX_FMT_NONE) is told to give: the hardware's,
// else the first that is in memory. AV_PIX_FMT_NONE: there is neither.
AVPixelFormat choose_format(const AVPixelFormat* offered, AVPixelFormat hardware);

}  // namespace valora::media
