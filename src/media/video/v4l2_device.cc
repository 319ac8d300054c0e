#include "media/video/v4l2_device.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

extern "C" {
#include <libavutil/imgutils.h>
}

#include "media/video/libav.h"
#include "media/video/stop.h"

namespace valora::media {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint32_t kBuffers = 4;
constexpr size_t kPadding = 64;             // swscale's vector code reads past the planes
constexpr milliseconds kStopInterval{100};  // between looks at the stop token

struct PixelFormat {
  uint32_t code;
  AVPixelFormat format;  // AV_PIX_FMT_NONE: compressed
};
constexpr std::array<PixelFormat, 8> kFormats{{{V4L2_PIX_FMT_YUYV, AV_PIX_FMT_YUYV422},
                                               {V4L2_PIX_FMT_UYVY, AV_PIX_FMT_UYVY422},
                                               {V4L2_PIX_FMT_NV12, AV_PIX_FMT_NV12},
                                               {V4L2_PIX_FMT_YUV420, AV_PIX_FMT_YUV420P},
                                               {V4L2_PIX_FMT_RGB24, AV_PIX_FMT_RGB24},
                                               {V4L2_PIX_FMT_BGR24, AV_PIX_FMT_BGR24},
                                               {V4L2_PIX_FMT_MJPEG, AV_PIX_FMT_NONE},
                                               {V4L2_PIX_FMT_JPEG, AV_PIX_FMT_NONE}}};

int control(int device, unsigned long request, void* argument) {
  int code = 0;
  do code = ::ioctl(device, request, argument);
  while (code < 0 && errno == EINTR);
  return code;
}

// A buffer that the driver's memory is mapped for, as ioctls describe it.
v4l2_buffer mapped_buffer(uint32_t index = 0) {
  v4l2_buffer buffer{};
  buffer.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  buffer.memory = V4L2_MEMORY_MMAP;
  buffer.index = index;
  return buffer;
}

Error device_error(std::string_view what) {
  return {ErrorCode::kUnavailable, fmt::format("{}: {}", what, std::strerror(errno)), {}};
}

AVColorSpace matrix_of(const v4l2_pix_format& format) {
  uint32_t encoding = format.ycbcr_enc;
  if (encoding == V4L2_YCBCR_ENC_DEFAULT)
    encoding = static_cast<uint32_t>(V4L2_MAP_YCBCR_ENC_DEFAULT(format.colorspace));
  switch (encoding) {
    case V4L2_YCBCR_ENC_709:
    case V4L2_YCBCR_ENC_XV709: return AVCOL_SPC_BT709;
    case V4L2_YCBCR_ENC_BT2020: return AVCOL_SPC_BT2020_NCL;
    default: return AVCOL_SPC_UNSPECIFIED;  // BT.601
  }
}

bool full_range(const v4l2_pix_format& format, bool rgb) {
  uint32_t range = format.quantization;
  if (range == V4L2_QUANTIZATION_DEFAULT)
    range = static_cast<uint32_t>(
        V4L2_MAP_QUANTIZATION_DEFAULT(rgb, format.colorspace, format.ycbcr_enc));
  return range == V4L2_QUANTIZATION_FULL_RANGE;
}

}  // namespace

struct V4l2Device::Impl {
  struct Buffer {
    void* data;
    size_t size;
  };

  ~Impl() {
    for (const Buffer& buffer : buffers) ::munmap(buffer.data, buffer.size);
    if (device >= 0) ::close(device);
  }

  Status choose_format(Size wanted);
  Status start();
  Status queue(uint32_t index) const;
  bool whole(const v4l2_buffer& buffer) const;
  Result<bool> take();
  Status point_planes();

  int device = -1;
  v4l2_pix_format format{};
  AVPixelFormat pixels = AV_PIX_FMT_NONE;
  std::vector<Buffer> buffers;
  std::vector<uint8_t> picture;  // `size` bytes, and padding
  size_t size = 0;
  double time = 0;
  std::unique_ptr<AVFrame, FreeLibav> frame{av_frame_alloc()};
  RgbConverter converter;
};

Status V4l2Device::Impl::choose_format(Size wanted) {
  v4l2_capability able{};
  if (control(device, VIDIOC_QUERYCAP, &able) < 0) {
    if (errno == ENOTTY || errno == EINVAL) return invalid("the device is no camera");
    return device_error("the camera does not answer");
  }
  const uint32_t can =
      able.capabilities & V4L2_CAP_DEVICE_CAPS ? able.device_caps : able.capabilities;
  if (!(can & V4L2_CAP_VIDEO_CAPTURE) || !(can & V4L2_CAP_STREAMING))
    return invalid("the device captures no video in one plane");
  v4l2_format now{};
  now.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  if (control(device, VIDIOC_G_FMT, &now) < 0) return device_error("the camera has no format");
  if (wanted.width == 0)
    wanted = {static_cast<int>(now.fmt.pix.width), static_cast<int>(now.fmt.pix.height)};
  std::optional<std::pair<v4l2_format, AVPixelFormat>> chosen;
  for (const PixelFormat& each : kFormats) {
    v4l2_format tried = now;
    tried.fmt.pix.pixelformat = each.code;
    tried.fmt.pix.width = wanted.width;
    tried.fmt.pix.height = wanted.height;
    tried.fmt.pix.bytesperline = 0;
    tried.fmt.pix.field = V4L2_FIELD_NONE;
    if (control(device, VIDIOC_TRY_FMT, &tried) < 0) {
      if (errno == EINVAL) continue;
      return device_error("the camera does not answer");
    }
    if (tried.fmt.pix.pixelformat != each.code) continue;
    const bool exact = tried.fmt.pix.width == static_cast<uint32_t>(wanted.width) &&
                       tried.fmt.pix.height == static_cast<uint32_t>(wanted.height);
    if (!chosen || exact) chosen = {tried, each.format};
    if (exact) break;
  }
  if (!chosen) return invalid("the camera has none of the known pixel formats");
  const uint32_t code = chosen->first.fmt.pix.pixelformat;
  if (control(device, VIDIOC_S_FMT, &chosen->first) < 0)
    return device_error("the camera's format cannot be set");
  format = chosen->first.fmt.pix;
  if (format.pixelformat != code)
    return Error{ErrorCode::kUnavailable, "the camera does not take its own format", {}};
  pixels = chosen->second;
  return {};
}

Status V4l2Device::Impl::queue(uint32_t index) const {
  v4l2_buffer buffer = mapped_buffer(index);
  if (control(device, VIDIOC_QBUF, &buffer) < 0) return device_error("the camera is gone");
  return {};
}

Status V4l2Device::Impl::start() {
  v4l2_requestbuffers wanted{};
  wanted.count = kBuffers;
  wanted.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  wanted.memory = V4L2_MEMORY_MMAP;
  if (control(device, VIDIOC_REQBUFS, &wanted) < 0)
    return device_error("the camera gives no buffers");
  for (uint32_t i = 0; i < wanted.count; ++i) {
    v4l2_buffer buffer = mapped_buffer(i);
    if (control(device, VIDIOC_QUERYBUF, &buffer) < 0)
      return device_error("the camera gives no buffers");
    void* data = ::mmap(nullptr, buffer.length, PROT_READ | PROT_WRITE, MAP_SHARED, device,
                        static_cast<off_t>(buffer.m.offset));
    if (data == MAP_FAILED) return device_error("the camera's buffers cannot be mapped");
    buffers.push_back({data, buffer.length});
    VALORA_CHECK(queue(i));
  }
  int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  if (control(device, VIDIOC_STREAMON, &type) < 0) return device_error("the camera does not start");
  return {};
}

bool V4l2Device::Impl::whole(const v4l2_buffer& buffer) const {
  return !(buffer.flags & V4L2_BUF_FLAG_ERROR) && buffer.bytesused > 0 &&
         buffer.bytesused <= buffers[buffer.index].size;
}

// Copies the newest filled buffer, if there is one, and gives all back.
Result<bool> V4l2Device::Impl::take() {
  std::optional<v4l2_buffer> newest;
  for (size_t i = 0; i < buffers.size(); ++i) {
    v4l2_buffer buffer = mapped_buffer();
    if (control(device, VIDIOC_DQBUF, &buffer) < 0) {
      if (errno == EAGAIN || errno == EIO) break;  // none yet, or one was lost
      return device_error("the camera is gone");
    }
    if (buffer.index >= buffers.size())
      return Error{ErrorCode::kUnavailable, "the camera gives a buffer that it does not have", {}};
    if (!whole(buffer)) {
      VALORA_CHECK(queue(buffer.index));
      continue;
    }
    if (newest) VALORA_CHECK(queue(newest->index));
    newest = buffer;
  }
  if (!newest) return false;
  const auto* bytes = static_cast<const uint8_t*>(buffers[newest->index].data);
  size = newest->bytesused;
  picture.assign(bytes, bytes + size);
  picture.resize(size + kPadding);
  time = static_cast<double>(newest->timestamp.tv_sec) +
         static_cast<double>(newest->timestamp.tv_usec) / 1e6;
  VALORA_CHECK(queue(newest->index));
  return true;
}

// The frame's planes within the picture; rows are bytesperline apart.
Status V4l2Device::Impl::point_planes() {
  av_frame_unref(frame.get());
  frame->format = pixels;
  frame->width = static_cast<int>(format.width);
  frame->height = static_cast<int>(format.height);
  frame->colorspace = matrix_of(format);
  const bool rgb = pixels == AV_PIX_FMT_RGB24 || pixels == AV_PIX_FMT_BGR24;
  frame->color_range = full_range(format, rgb) ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  const auto stride = static_cast<int>(format.bytesperline);
  frame->linesize[0] = stride;
  if (pixels == AV_PIX_FMT_NV12) frame->linesize[1] = stride;
  if (pixels == AV_PIX_FMT_YUV420P) frame->linesize[1] = frame->linesize[2] = stride / 2;
  const int needed =
      av_image_fill_pointers(frame->data, pixels, frame->height, picture.data(), frame->linesize);
  if (needed < 0 || static_cast<size_t>(needed) > size ||
      stride < av_image_get_linesize(pixels, frame->width, 0))
    return Error{
        ErrorCode::kUnavailable, "the camera's pictures have another size than it says", {}};
  return {};
}

V4l2Device::V4l2Device(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
V4l2Device::~V4l2Device() = default;

Result<std::unique_ptr<V4l2Device>> V4l2Device::open(const std::string& path, Size size) {
  silence_libav();
  auto impl = std::make_unique<Impl>();
  if (!impl->frame) return internal("out of memory for a camera");
  impl->device = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (impl->device < 0) return device_error("the camera cannot be opened");
  VALORA_CHECK(impl->choose_format(size));
  VALORA_CHECK(impl->start());
  return std::unique_ptr<V4l2Device>(new V4l2Device(std::move(impl)));
}

Status V4l2Device::next(milliseconds patience, const std::stop_token& stop) {
  const auto deadline = steady_clock::now() + patience;
  while (true) {
    VALORA_CHECK(check_stop(stop));
    VALORA_TRY(taken, impl_->take());
    if (taken) return {};
    const auto left =
        std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()).count();
    if (left <= 0)
      return Error{ErrorCode::kUnavailable,
                   fmt::format("the camera has sent nothing for {} s", patience.count() / 1000.0),
                   {}};
    pollfd waiting{impl_->device, POLLIN, 0};
    const int64_t wait = std::min<int64_t>(left, kStopInterval.count());
    if (::poll(&waiting, 1, static_cast<int>(wait)) < 0 && errno != EINTR)
      return device_error("the camera is gone");
    if (waiting.revents & (POLLERR | POLLHUP | POLLNVAL))
      return Error{ErrorCode::kUnavailable, "the camera has stopped", {}};
  }
}

double V4l2Device::time() const { return impl_->time; }

Result<Image> V4l2Device::image(const Limits& limits) {
  Impl& self = *impl_;
  if (self.pixels == AV_PIX_FMT_NONE) return decode_image({self.picture.data(), self.size}, limits);
  VALORA_CHECK(self.point_planes());
  return self.converter.to_rgb(*self.frame, 1, limits);
}

}  // namespace valora::media
