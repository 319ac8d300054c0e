// Decodes the primary picture of a HEIC file. libheif reads the container and applies its tiles,
// crop, rotation and mirroring; EXIF's orientation, which repeats them, has no effect then.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <libheif/heif.h>

#include "media/image/decoders.h"
#include "media/image/hevc_plugin.h"

namespace valora::media {
namespace {

constexpr char kHeic[] = "HEIC image";

struct FreeHeif {
  void operator()(heif_context* p) const { heif_context_free(p); }
  void operator()(heif_image_handle* p) const { heif_image_handle_release(p); }
  void operator()(heif_image* p) const { heif_image_release(p); }
  void operator()(heif_color_profile_nclx* p) const { heif_nclx_color_profile_free(p); }
};

struct HeicFile {
  std::unique_ptr<heif_context, FreeHeif> context;
  std::unique_ptr<heif_image_handle, FreeHeif> picture;
  StoredSize size;
};

Error heic_error(const heif_error& error) { return broken_image(kHeic, error.message); }

// True if an item of the file lays pictures over each other, on a canvas of any size.
bool has_overlay(ByteSpan bytes) {
  constexpr std::string_view kEntry = "infe", kOverlay = "iovl";
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (size_t at = text.find(kEntry); at != text.npos; at = text.find(kEntry, at + 1))
    // Version and flags, a number of two or four bytes, protection, type.
    for (const size_t type : {at + 12, at + 14})
      if (type < text.size() && text.substr(type, kOverlay.size()) == kOverlay) return true;
  return false;
}

Result<HeicFile> open_heic(ByteSpan bytes, const Limits& limits) {
  register_hevc_plugin();
  if (has_overlay(bytes)) return broken_image(kHeic, "overlays of pictures are not supported");
  HeicFile file;
  file.context.reset(heif_context_alloc());
  if (!file.context) return internal("out of memory for a HEIC decoder");
  heif_context_set_max_decoding_threads(file.context.get(), 0);
  heif_error error = heif_context_read_from_memory_without_copy(file.context.get(), bytes.data(),
                                                                bytes.size(), nullptr);
  if (error.code != heif_error_Ok) return heic_error(error);
  heif_image_handle* picture = nullptr;
  error = heif_context_get_primary_image_handle(file.context.get(), &picture);
  if (error.code != heif_error_Ok) return heic_error(error);
  file.picture.reset(picture);
  file.size = {heif_image_handle_get_width(picture), heif_image_handle_get_height(picture)};
  VALORA_CHECK(check_size(kHeic, file.size.width, file.size.height, limits));
  // A grid states its size once more.
  heif_context_set_maximum_image_size_limit(
      file.context.get(), static_cast<int>(std::max(file.size.width, file.size.height)) + 1);
  return file;
}

// A plane of the decoded picture, in 8 bits.
class Plane {
 public:
  Plane(const heif_image& image, heif_channel channel) {
    data_ = heif_image_get_plane_readonly(&image, channel, &stride_);
    const int bits = heif_image_get_bits_per_pixel_range(&image, channel);
    wide_ = bits > 8;
    shift_ = std::max(bits - 8, 0);
    width_ = heif_image_get_width(&image, channel);
    height_ = heif_image_get_height(&image, channel);
  }
  bool covers(int64_t width, int64_t height) const {
    return data_ && width_ >= width && height_ >= height;
  }
  int at(int64_t x, int64_t y) const {
    const uint8_t* row = data_ + y * stride_;
    if (!wide_) return row[x];
    uint16_t value;
    std::memcpy(&value, row + x * 2, sizeof value);
    return value >> shift_;
  }

 private:
  const uint8_t* data_ = nullptr;
  int stride_ = 0, shift_ = 0, width_ = 0, height_ = 0;
  bool wide_ = false;
};

// From YCbCr to RGB.
struct Coefficients {
  double red_cr = 1.402, green_cb = -0.344136, green_cr = -0.714136, blue_cb = 1.772;
  bool full_range = true;
};

// From the file's profile, or else the stream's.
Result<Coefficients> coefficients_of(const HeicFile& file, const HevcBudget& stream) {
  heif_color_profile_nclx* found = nullptr;
  heif_image_handle_get_nclx_color_profile(file.picture.get(), &found);
  const std::unique_ptr<heif_color_profile_nclx, FreeHeif> profile(found);
  Coefficients out;
  out.full_range = profile ? profile->full_range_flag != 0 : stream.full_range;
  const int matrix = profile ? static_cast<int>(profile->matrix_coefficients) : stream.matrix;
  double red = 0, blue = 0;  // weights of luma
  switch (matrix) {
    case 1: red = 0.2126, blue = 0.0722; break;
    case 2: return out;
    case 4: red = 0.30, blue = 0.11; break;
    case 5:
    case 6: red = 0.299, blue = 0.114; break;
    case 7: red = 0.212, blue = 0.087; break;
    case 9:
    case 10: red = 0.2627, blue = 0.0593; break;
    default:
      return broken_image(kHeic, fmt::format("its colour matrix {} is not supported", matrix));
  }
  const double green = 1 - red - blue;
  out.red_cr = 2 * (1 - red);
  out.blue_cb = 2 * (1 - blue);
  out.green_cb = -2 * blue * (1 - blue) / green;
  out.green_cr = -2 * red * (1 - red) / green;
  return out;
}

uint8_t to_byte(double value) {
  return static_cast<uint8_t>(std::clamp<long>(std::lround(value), 0, 255));
}

class HeicColours {
 public:
  // Halved chroma: in fixed point, as libheif has it for the usual pictures.
  HeicColours(const Coefficients& c, bool halved)
      : c_(c),
        fixed_(halved && c.full_range),
        red_cr_(std::lround(256 * c.red_cr)),
        green_cb_(std::lround(256 * c.green_cb)),
        green_cr_(std::lround(256 * c.green_cr)),
        blue_cb_(std::lround(256 * c.blue_cb)) {}

  void convert(int luma, int cb, int cr, uint8_t* rgb) const {
    cb -= 128, cr -= 128;
    if (fixed_) {
      rgb[0] = clamped(luma + ((red_cr_ * cr + 128) >> 8));
      rgb[1] = clamped(luma + ((green_cb_ * cb + green_cr_ * cr + 128) >> 8));
      rgb[2] = clamped(luma + ((blue_cb_ * cb + 128) >> 8));
      return;
    }
    const double y = c_.full_range ? luma : (luma - 16) * (255.0 / 219);
    const double scale = c_.full_range ? 1 : 255.0 / 224, b = cb * scale, r = cr * scale;
    rgb[0] = to_byte(y + c_.red_cr * r);
    rgb[1] = to_byte(y + c_.green_cb * b + c_.green_cr * r);
    rgb[2] = to_byte(y + c_.blue_cb * b);
  }

 private:
  static uint8_t clamped(long value) {
    return static_cast<uint8_t>(std::clamp<long>(value, 0, 255));
  }
  Coefficients c_;
  bool fixed_;
  long red_cr_, green_cb_, green_cr_, blue_cb_;
};

Result<Image> to_rgb(const heif_image& decoded, const Coefficients& coefficients,
                     const Limits& limits) {
  const int64_t width = heif_image_get_primary_width(&decoded),
                height = heif_image_get_primary_height(&decoded);
  VALORA_CHECK(check_size(kHeic, width, height, limits));
  const heif_chroma chroma = heif_image_get_chroma_format(&decoded);
  const bool grey = chroma == heif_chroma_monochrome;
  if (!grey &&
      (heif_image_get_colorspace(&decoded) != heif_colorspace_YCbCr ||
       (chroma != heif_chroma_420 && chroma != heif_chroma_422 && chroma != heif_chroma_444)))
    return broken_image(kHeic, "its pixel format is not supported");
  const int across = chroma == heif_chroma_444 ? 0 : 1, down = chroma == heif_chroma_420 ? 1 : 0;
  const Plane y_plane(decoded, heif_channel_Y);
  if (!y_plane.covers(width, height)) return broken_image(kHeic, "a colour plane is missing");
  Image image = blank_image(width, height);
  uint8_t* rgb = image.rgb.data();
  if (grey) {
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x, rgb += 3)
        rgb[0] = rgb[1] = rgb[2] = static_cast<uint8_t>(y_plane.at(x, y));
    return image;
  }
  const Plane cb(decoded, heif_channel_Cb), cr(decoded, heif_channel_Cr);
  const int64_t chroma_width = (width + across) >> across, chroma_height = (height + down) >> down;
  if (!cb.covers(chroma_width, chroma_height) || !cr.covers(chroma_width, chroma_height))
    return broken_image(kHeic, "a colour plane is missing");
  const HeicColours colours(coefficients, chroma == heif_chroma_420);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x, rgb += 3)
      colours.convert(y_plane.at(x, y), cb.at(x >> across, y >> down),
                      cr.at(x >> across, y >> down), rgb);
  return image;
}

using HeifImage = std::unique_ptr<heif_image, FreeHeif>;

Result<HeifImage> decode_planes(const HeicFile& file, heif_chroma chroma) {
  heif_image* decoded = nullptr;
  const heif_error error = heif_decode_image(
      file.picture.get(), &decoded,
      chroma == heif_chroma_monochrome ? heif_colorspace_monochrome : heif_colorspace_YCbCr, chroma,
      nullptr);
  HeifImage image(decoded);
  if (error.code != heif_error_Ok) return heic_error(error);
  return image;
}

}  // namespace

Result<StoredSize> heic_size(ByteSpan bytes, const Limits& limits) {
  VALORA_TRY(file, open_heic(bytes, limits));
  return file.size;
}

Result<StoredImage> decode_heic(ByteSpan bytes, const Limits& limits) {
  VALORA_TRY(file, open_heic(bytes, limits));
  HevcBudget budget(limits.max_pixels);
  // libheif converts to what is asked for, and does not say before what it has.
  VALORA_TRY(usual, decode_planes(file, heif_chroma_420));
  const heif_chroma chroma = static_cast<heif_chroma>(budget.chroma.value_or(heif_chroma_420));
  if (chroma != heif_chroma_420) {
    VALORA_TRY(again, decode_planes(file, chroma));
    usual = std::move(again);
  }
  VALORA_TRY(coefficients, coefficients_of(file, budget));
  VALORA_TRY(image, to_rgb(*usual, coefficients, limits));
  return StoredImage{std::move(image)};
}

}  // namespace valora::media
