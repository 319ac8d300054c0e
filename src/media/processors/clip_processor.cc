// CLIP's image processor as LLaVA uses it: resizes the shorter edge, crops the centre, and cuts one
// square of patches.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "media/processors/processor.h"
#include "media/processors/smart_resize.h"

namespace valora::media {
namespace {

constexpr std::string_view kClipKeys[] = {
    "do_resize",      "size",         "do_center_crop",       "crop_size",
    "do_rescale",     "do_normalize", "image_mean",           "image_std",
    "rescale_factor", "resample",     "image_processor_type",
};
// Without do_pad, LLaVA's own class behaves like CLIP's.
constexpr std::string_view kTypes[] = {"CLIPImageProcessor",      "CLIPImageProcessorFast",
                                       "CLIPImageProcessorPil",   "LlavaImageProcessor",
                                       "LlavaImageProcessorFast", "LlavaImageProcessorPil"};
constexpr int kMaxSide = 1 << 13;
// A more elongated picture would be resized to thousands of pixels, only for most of them to be
// cropped.
constexpr int64_t kMaxAspect = 200;
constexpr int64_t kMaxResizedPixels = int64_t{64} << 20;

struct ClipSettings {
  bool do_resize = true;
  int shortest_edge = 224;  // 0: resize to `fixed` instead
  PixelSize fixed;
  bool do_center_crop = true;
  PixelSize crop{224, 224};
  PixelValues values;
};

// Reads {"height", "width"} or one number for both.
Result<PixelSize> read_sides(const Json& json, std::string_view key, PixelSize fallback) {
  const auto it = json.find(std::string(key));
  if (it == json.end() || it->is_null()) return fallback;
  if (it->is_number_integer()) {
    VALORA_TRY(side, positive(json, key, fallback.width, kMaxSide));
    return PixelSize{side, side};
  }
  if (!it->is_object() || !it->contains("height") || !it->contains("width"))
    return refuse_setting(key, "must hold height and width");
  VALORA_TRY(height, positive(*it, "height", 1, kMaxSide));
  VALORA_TRY(width, positive(*it, "width", 1, kMaxSide));
  return PixelSize{width, height};
}

Status read_size(const Json& json, ClipSettings& settings) {
  const auto it = json.find("size");
  if (it == json.end() || it->is_null()) return {};
  if (it->is_number_integer()) {  // in files of old versions
    VALORA_TRY(edge, positive(json, "size", 1, kMaxSide));
    settings.shortest_edge = edge;
    return {};
  }
  if (it->is_object() && it->contains("shortest_edge")) {
    VALORA_TRY(edge, positive(*it, "shortest_edge", 1, kMaxSide));
    settings.shortest_edge = edge;
    return {};
  }
  VALORA_TRY(fixed, read_sides(json, "size", {}));
  settings.shortest_edge = 0;
  settings.fixed = fixed;
  return {};
}

Result<ClipSettings> read_settings(const Json& json) {
  VALORA_CHECK(check_keys(json, kClipKeys));
  VALORA_CHECK(check_type(json, "image_processor_type", kTypes));
  ClipSettings settings;
  VALORA_TRY(do_resize, field_or(json, "do_resize", true));
  VALORA_TRY(do_center_crop, field_or(json, "do_center_crop", true));
  VALORA_TRY(values, read_pixel_values(json));
  VALORA_TRY(crop, read_sides(json, "crop_size", settings.crop));
  VALORA_CHECK(read_size(json, settings));
  VALORA_CHECK(check_bicubic(json));
  settings.do_resize = do_resize;
  settings.do_center_crop = do_center_crop;
  settings.crop = crop;
  settings.values = values;
  return settings;
}

// The centre of the picture, padded with black where the picture is smaller.
Image centre_crop(const Image& image, PixelSize size) {
  Image out{size.width, size.height,
            std::vector<uint8_t>(size_t(size.width) * size.height * kChannels)};
  // Rounded as in the reference: down when cropping, up when padding.
  const auto offset = [](int have, int want) {
    return have >= want ? (have - want) / 2 : -((want - have + 1) / 2);
  };
  const int left = offset(image.width, size.width), top = offset(image.height, size.height);
  const int x0 = std::max(0, -left), x1 = std::min(size.width, image.width - left);
  const int y0 = std::max(0, -top), y1 = std::min(size.height, image.height - top);
  for (int y = y0; y < y1; ++y) {
    const uint8_t* row = &image.rgb[(size_t(y + top) * image.width + (x0 + left)) * kChannels];
    std::copy(row, row + size_t(x1 - x0) * kChannels,
              &out.rgb[(size_t(y) * size.width + x0) * kChannels]);
  }
  return out;
}

class ClipProcessor final : public Processor {
 public:
  ClipProcessor(const ClipSettings& settings, const ClipTarget& target)
      : settings_(settings),
        target_(target),
        grid_(target.image_size / target.patch_size),
        table_(make_pixel_table(settings.values)) {}

  Result<VisualInput> image(const Image& image) const override {
    VALORA_CHECK(check_aspect(image.width, image.height));
    const Image square = cut(image);
    if (square.width != target_.image_size || square.height != target_.image_size)
      return invalid(
          fmt::format("preprocessing yields {} x {} pixels, but the vision tower expects {} x {}",
                      square.width, square.height, target_.image_size, target_.image_size));
    VisualInput input;
    input.kind = MediaKind::kImage;
    input.grid_h = input.grid_w = grid_;
    input.patch_dim = kChannels * target_.patch_size * target_.patch_size;
    input.tokens = tokens();
    input.patches.resize(size_t(grid_) * grid_ * input.patch_dim);
    float* out = input.patches.data();
    for (int y = 0; y < grid_; ++y)
      for (int x = 0; x < grid_; ++x) out = append_patch(square, y, x, out);
    return input;
  }

  Result<VisualInput> video(const std::vector<Image>&, double,
                            const std::stop_token&) const override {
    return no_videos();
  }
  Result<int64_t> image_tokens(int width, int height) const override {
    VALORA_CHECK(check_aspect(width, height));
    return int64_t{tokens()};
  }
  Result<int64_t> video_tokens(int, int, int64_t) const override { return no_videos(); }
  FrameSampler frame_sampler() const override {
    return [](const VideoInfo&) -> Result<std::vector<int64_t>> { return no_videos(); };
  }

  Digest settings_digest() const override {
    DigestBuilder digest;
    digest.add(std::string_view("clip")).add(settings_.do_resize).add(settings_.shortest_edge);
    digest.add(settings_.fixed.width).add(settings_.fixed.height).add(settings_.do_center_crop);
    digest.add(settings_.crop.width).add(settings_.crop.height);
    digest.add(target_.image_size).add(target_.patch_size).add(target_.class_token);
    add_to_digest(digest, settings_.values);
    return digest.finish();
  }

 private:
  static Error no_videos() { return invalid("this model does not support videos", "messages"); }

  int tokens() const { return grid_ * grid_ + (target_.class_token ? 1 : 0); }

  Status check_aspect(int width, int height) const {
    const int64_t shorter = std::min(width, height), longer = std::max(width, height),
                  edge = settings_.shortest_edge;
    if (shorter < 1 || longer > shorter * kMaxAspect)
      return invalid(fmt::format("{} x {} pixels: the aspect ratio must not exceed {}", width,
                                 height, kMaxAspect));
    if (edge * (edge * longer / shorter) > kMaxResizedPixels)
      return invalid(fmt::format("{} x {} pixels would be resized to more than {}", width, height,
                                 kMaxResizedPixels));
    return {};
  }

  // Resizes and crops; upright RGB.
  Image cut(const Image& image) const {
    const Image resized = settings_.do_resize ? resize(image) : image;
    return settings_.do_center_crop ? centre_crop(resized, settings_.crop) : resized;
  }

  Image resize(const Image& image) const {
    if (settings_.shortest_edge == 0)
      return resize_bicubic(image, settings_.fixed.width, settings_.fixed.height);
    const int64_t edge = settings_.shortest_edge, w = image.width, h = image.height;
    if (w <= h) return resize_bicubic(image, int(edge), int(edge * h / w));
    return resize_bicubic(image, int(edge * w / h), int(edge));
  }

  float* append_patch(const Image& image, int patch_y, int patch_x, float* out) const {
    const int side = target_.patch_size;
    for (int c = 0; c < kChannels; ++c)
      for (int y = 0; y < side; ++y) {
        const uint8_t* pixel =
            &image.rgb[((size_t(patch_y) * side + y) * image.width + size_t(patch_x) * side) *
                           kChannels +
                       c];
        for (int x = 0; x < side; ++x, pixel += kChannels) *out++ = table_[c][*pixel];
      }
    return out;
  }

  ClipSettings settings_;
  ClipTarget target_;
  int grid_;
  PixelTable table_;
};

}  // namespace

Result<std::shared_ptr<const Processor>> make_clip_processor(const Json& image_json,
                                                             const ClipTarget& target) {
  VALORA_TRY(settings, read_settings(image_json));
  const PixelSize made = settings.do_center_crop                             ? settings.crop
                         : settings.do_resize && settings.shortest_edge == 0 ? settings.fixed
                                                                             : PixelSize{};
  if (made.width != 0 && (made.width != target.image_size || made.height != target.image_size))
    return refuse_setting(
        settings.do_center_crop ? "crop_size" : "size",
        fmt::format("gives pictures of {} x {} pixels, but the vision tower takes {} x {}",
                    made.width, made.height, target.image_size, target.image_size));
  return std::shared_ptr<const Processor>(std::make_shared<ClipProcessor>(settings, target));
}

}  // namespace valora::media
