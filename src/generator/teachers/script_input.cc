#include "generator/teachers/script_input.h"

#include <string>

#include "base/files/file.h"
#include "media/image/image.h"

namespace valora::generator {
namespace {

Result<media::Image> picture_of(const TeacherSource& teacher, const Sample& sample) {
  if (sample.media.size() != 1 || sample.media.front().kind != Medium::Kind::kImage ||
      sample.media.front().files.size() != 1)
    return invalid("a TorchScript teacher needs one image per sample");
  const media::Limits limits;
  VALORA_TRY(bytes, read_file(sample.media.front().files.front(), limits.max_bytes));
  VALORA_TRY(image, media::decode_image(
                        {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, limits));
  return media::resize_bicubic(image, teacher.width, teacher.height);
}

// The weights of PIL's convert("L").
uint8_t grey(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

// out: [channels, height, width].
void write_planes(const TeacherSource& teacher, const media::Image& image, float* out) {
  const size_t pixels = static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
  for (int c = 0; c < teacher.channels; ++c) {
    const double mean = teacher.mean.empty() ? 0 : teacher.mean[static_cast<size_t>(c)];
    const double deviation =
        teacher.deviation.empty() ? 1 : teacher.deviation[static_cast<size_t>(c)];
    for (size_t i = 0; i < pixels; ++i) {
      const uint8_t* rgb = &image.rgb[i * 3];
      const double value = (teacher.channels == 1 ? grey(rgb) : rgb[c]) / 255.0;
      *out++ = static_cast<float>((value - mean) / deviation);
    }
  }
}

}  // namespace

Status check_input(const TeacherSource& teacher) {
  if (teacher.width < 1 || teacher.height < 1 || teacher.width > 8192 || teacher.height > 8192)
    return invalid("a teacher's pictures must have sides of 1 to 8192 pixels");
  if (teacher.channels != 1 && teacher.channels != 3)
    return invalid("a teacher's pictures must have 1 or 3 channels");
  const auto channels = static_cast<size_t>(teacher.channels);
  if (!teacher.mean.empty() && teacher.mean.size() != channels)
    return invalid("a teacher's mean must have one number per channel");
  if (!teacher.deviation.empty() && teacher.deviation.size() != channels)
    return invalid("a teacher's std must have one number per channel");
  for (const double deviation : teacher.deviation)
    if (!(deviation > 0)) return invalid("a teacher's std must be above 0");
  return {};
}

Result<at::Tensor> script_input(const TeacherSource& teacher, std::span<const Sample> samples) {
  at::Tensor input = at::empty(
      {static_cast<int64_t>(samples.size()), teacher.channels, teacher.height, teacher.width},
      at::kFloat);
  const int64_t size = input.stride(0);
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto image = picture_of(teacher, samples[i]);
    if (!image.ok())
      return Error{image.error().code, samples[i].origin + ": " + image.error().message, {}};
    write_planes(teacher, *image, input.data_ptr<float>() + static_cast<int64_t>(i) * size);
  }
  return input;
}

}  // namespace valora::generator
