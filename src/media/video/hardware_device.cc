#include "media/video/hardware_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string_view>

#include "base/text/strings.h"
#include "media/video/video_decoder.h"

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace valora::media {
namespace {

constexpr char kSoftware[] = "software", kAuto[] = "auto";

// Collects libav's messages of this thread: its error codes hardly say why a device cannot be
// opened. Some reasons are no errors to libav.
class LibavMessages {
 public:
  LibavMessages() : lock_(mutex()) {
    collected() = this;
    av_log_set_callback(collect);
  }
  ~LibavMessages() {
    av_log_set_callback(av_log_default_callback);
    collected() = nullptr;
  }
  LibavMessages(const LibavMessages&) = delete;
  LibavMessages& operator=(const LibavMessages&) = delete;

  const std::string& text() const { return errors_.empty() ? others_ : errors_; }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static LibavMessages*& collected() {
    thread_local LibavMessages* messages = nullptr;
    return messages;
  }
  static void collect(void*, int level, const char* format, va_list arguments) {
    LibavMessages* const self = collected();
    if (!self || level > AV_LOG_VERBOSE) return;
    char line[512];
    std::vsnprintf(line, sizeof line, format, arguments);
    std::string_view message = line;
    while (message.ends_with('\n') || message.ends_with('.') || message.ends_with(' '))
      message.remove_suffix(1);
    if (message.empty()) return;
    std::string& text = level > AV_LOG_ERROR ? self->others_ : self->errors_;
    text += (text.empty() ? "" : "; ") + std::string(message);
  }

  const std::lock_guard<std::mutex> lock_;
  std::string errors_, others_;
};

std::optional<AVPixelFormat> format_on(AVHWDeviceType type, const AVCodec& codec) {
  const AVCodecHWConfig* config = nullptr;
  for (int i = 0; (config = avcodec_get_hw_config(&codec, i)); ++i)
    if (config->device_type == type && (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX))
      return config->pix_fmt;
  return std::nullopt;
}

template <typename Wanted>
const AVCodec* find_decoder_on(AVHWDeviceType type, Wanted wanted) {
  void* at = nullptr;
  while (const AVCodec* codec = av_codec_iterate(&at))
    if (av_codec_is_decoder(codec) && wanted(*codec) && format_on(type, *codec)) return codec;
  return nullptr;
}

std::shared_ptr<const HardwareDevice> open_any() {
  std::string faults;
  for (const AVHWDeviceType type : hardware_types()) {
    auto device = HardwareDevice::open(type, "");
    if (device.ok()) return *device;
    faults += (faults.empty() ? "" : "; ") + device.error().message;
  }
  spdlog::info("--video-decoder auto: live streams are decoded in software: {}", faults);
  return nullptr;
}

}  // namespace

Result<std::shared_ptr<const HardwareDevice>> HardwareDevice::open(AVHWDeviceType type,
                                                                   const std::string& device) {
  silence_libav();
  AVBufferRef* context = nullptr;
  const LibavMessages messages;
  const int code =
      av_hwdevice_ctx_create(&context, type, device.empty() ? nullptr : device.c_str(), nullptr, 0);
  if (code >= 0) return std::make_shared<const HardwareDevice>(type, context);
  const std::string& said = messages.text();
  return Error{ErrorCode::kUnavailable,
               fmt::format("{}{}{} cannot be opened: {}{}", av_hwdevice_get_type_name(type),
                           device.empty() ? "" : ":", device, libav_reason(code),
                           said.empty() ? "" : fmt::format(" ({})", said)),
               {}};
}

std::optional<HardwareCodec> HardwareDevice::codec_for(const AVCodec& usual) const {
  if (const auto format = format_on(type_, usual)) return HardwareCodec{&usual, *format};
  // libav prefers other libraries to its own decoder of AV1, the only one that uses devices.
  const AVCodec* other =
      find_decoder_on(type_, [&](const AVCodec& each) { return each.id == usual.id; });
  if (!other) return std::nullopt;
  return HardwareCodec{other, *format_on(type_, *other)};
}

std::vector<AVHWDeviceType> hardware_types() {
  std::vector<AVHWDeviceType> types;
  AVHWDeviceType type = AV_HWDEVICE_TYPE_NONE;
  while ((type = av_hwdevice_iterate_types(type)) != AV_HWDEVICE_TYPE_NONE)
    if (find_decoder_on(type, [](const AVCodec&) { return true; })) types.push_back(type);
  return types;
}

AVPixelFormat choose_format(const AVPixelFormat* offered, AVPixelFormat hardware) {
  AVPixelFormat in_memory = AV_PIX_FMT_NONE;
  for (; *offered != AV_PIX_FMT_NONE; ++offered) {
    if (*offered == hardware) return hardware;
    const AVPixFmtDescriptor* about = av_pix_fmt_desc_get(*offered);
    if (in_memory == AV_PIX_FMT_NONE && about && !(about->flags & AV_PIX_FMT_FLAG_HWACCEL))
      in_memory = *offered;
  }
  return in_memory;
}

std::vector<std::string> video_decoders() {
  std::vector<std::string> names = {kSoftware, kAuto};
  for (const AVHWDeviceType type : hardware_types())
    names.emplace_back(av_hwdevice_get_type_name(type));
  return names;
}

Result<std::shared_ptr<const HardwareDevice>> open_video_decoder(const std::string& text) {
  std::shared_ptr<const HardwareDevice> device;
  if (text == kSoftware) return device;
  if (text == kAuto) {
    device = open_any();
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    const AVHWDeviceType type = av_hwdevice_find_type_by_name(text.substr(0, colon).c_str());
    const std::vector<AVHWDeviceType> types = hardware_types();
    const std::string known = fmt::format("{}", fmt::join(video_decoders(), ", "));
    if (std::ranges::find(types, type) == types.end())
      return invalid(fmt::format("--video-decoder \"{}\" is not known; the decoders here are {}",
                                 shortened(text, 40), known));
    auto opened = HardwareDevice::open(type, colon < text.size() ? text.substr(colon + 1) : "");
    if (!opened.ok())
      return Error{opened.error().code,
                   fmt::format("--video-decoder: {}; the decoders here are {}",
                               opened.error().message, known),
                   {}};
    device = std::move(opened).value();
  }
  if (device) spdlog::info("live streams are decoded on {}", text == kAuto ? device->name() : text);
  return device;
}

}  // namespace valora::media
