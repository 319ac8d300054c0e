// The image processor of Pixtral and Mistral 3: a picture of any size, in whole blocks of patches;
// the prompt separates their rows.
#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "media/processors/tile_patches.h"

namespace valora::media {
namespace {

constexpr std::string_view kPixtralKeys[] = {
    "do_resize",  "size",      "resample",       "do_rescale",           "do_normalize",
    "image_mean", "image_std", "rescale_factor", "image_processor_type",
    "do_pad",      // pads a request's pictures to one size
    "patch_size",  // overridden by processor_config.json
};
constexpr std::string_view kPixtralTypes[] = {"PixtralImageProcessor", "PixtralImageProcessorFast",
                                              "PixtralImageProcessorPil"};
constexpr int kMaxPixtralSide = 1 << 14;

struct PixtralSettings {
  PixelSize most{1024, 1024};
  Resample filter = Resample::kBicubic;
  PixelValues values;
};

Result<PixelSize> read_most(const Json& json, PixelSize fallback) {
  const auto it = json.find("size");
  if (it == json.end() || it->is_null()) return fallback;
  if (it->is_object() && it->contains("longest_edge")) {
    VALORA_TRY(edge, positive(*it, "longest_edge", 1, kMaxPixtralSide));
    return PixelSize{edge, edge};
  }
  if (!it->is_object() || !it->contains("height") || !it->contains("width"))
    return refuse_setting("size", "must hold longest_edge, or height and width");
  VALORA_TRY(height, positive(*it, "height", 1, kMaxPixtralSide));
  VALORA_TRY(width, positive(*it, "width", 1, kMaxPixtralSide));
  return PixelSize{width, height};
}

Result<PixtralSettings> read_pixtral_settings(const Json& json, const PixtralTarget& target) {
  VALORA_CHECK(check_keys(json, kPixtralKeys));
  VALORA_CHECK(check_type(json, "image_processor_type", kPixtralTypes));
  PixtralSettings settings;
  VALORA_TRY(most, read_most(json, settings.most));
  VALORA_TRY(filter, read_resample(json, settings.filter));
  VALORA_TRY(values, read_pixel_values(json));
  VALORA_TRY(do_resize, field_or(json, "do_resize", true));
  if (!do_resize)
    return refuse_setting("do_resize", "is false, and pictures are not in whole patches");
  // Beyond most_patches, transformers 4 has no distinct positions.
  const int block = target.patch_size * target.merge_size;
  const auto patches = [&](int side) { return ((side - 1) / block + 1) * target.merge_size; };
  if (std::max(patches(most.width), patches(most.height)) > target.most_patches)
    return refuse_setting(
        "size", fmt::format("gives more patches on a side than the {} of the vision tower",
                            target.most_patches));
  settings.most = most;
  settings.filter = filter;
  settings.values = values;
  return settings;
}

// both: processor_config.json; null if there is none.
Status check_pixtral_tokens(const Json& both, const PixtralTarget& target) {
  if (!both.is_object()) return {};
  VALORA_TRY(patch, optional_field<int64_t>(both, "patch_size"));
  VALORA_TRY(merge, optional_field<int64_t>(both, "spatial_merge_size"));
  if (patch && *patch != target.patch_size)
    return refuse_setting("patch_size", "is not that of the vision tower");
  if (merge && *merge != target.merge_size)
    return refuse_setting("spatial_merge_size", "is not that of config.json");
  for (const auto& [key, token] :
       {std::pair("image_token", "[IMG]"), std::pair("image_break_token", "[IMG_BREAK]"),
        std::pair("image_end_token", "[IMG_END]")}) {
    VALORA_TRY(said, optional_field<std::string>(both, key));
    if (said && *said != token) return refuse_setting(key, std::string("is not ") + token);
  }
  return {};
}

class PixtralPictures final : public Processor {
 public:
  PixtralPictures(const PixtralSettings& settings, const PixtralTarget& target)
      : settings_(settings), target_(target), table_(make_pixel_table(settings.values)) {}

  Result<VisualInput> image(const Image& image) const override {
    VALORA_TRY(blocks, blocks_of({image.width, image.height}));
    const int block = target_.patch_size * target_.merge_size;
    VisualInput input;
    input.grid_h = blocks.height * target_.merge_size;
    input.grid_w = blocks.width * target_.merge_size;
    input.patch_dim = kChannels * target_.patch_size * target_.patch_size;
    input.tokens = blocks.width * blocks.height;
    input.token_rows = blocks.height;
    input.patches.resize(size_t(input.patch_count()) * input.patch_dim);
    append_patches(
        resize_image(image, blocks.width * block, blocks.height * block, settings_.filter), {},
        {input.grid_w, input.grid_h}, {target_.patch_size, target_.merge_size}, table_,
        input.patches.data());
    return input;
  }
  Result<VisualInput> video(const std::vector<Image>&, double,
                            const std::stop_token&) const override {
    return no_pixtral_videos();
  }
  Result<int64_t> image_tokens(int width, int height) const override {
    VALORA_TRY(blocks, blocks_of({width, height}));
    return int64_t{blocks.width} * blocks.height;
  }
  Result<int64_t> video_tokens(int, int, int64_t) const override { return no_pixtral_videos(); }
  FrameSampler frame_sampler() const override {
    return [](const VideoInfo&) -> Result<std::vector<int64_t>> { return no_pixtral_videos(); };
  }
  Digest settings_digest() const override {
    DigestBuilder digest;
    digest.add(std::string_view("pixtral")).add(target_.patch_size).add(target_.merge_size);
    digest.add(settings_.most.width).add(settings_.most.height);
    digest.add(static_cast<int>(settings_.filter));
    add_to_digest(digest, settings_.values);
    return digest.finish();
  }

 private:
  static Error no_pixtral_videos() {
    return invalid("this model does not support videos", "messages");
  }

  // Blocks per side after resizing.
  Result<PixelSize> blocks_of(PixelSize picture) const {
    if (picture.width < 1 || picture.height < 1) return invalid("the picture has no pixels");
    const double ratio = std::max(double(picture.height) / settings_.most.height,
                                  double(picture.width) / settings_.most.width);
    PixelSize size = picture;
    if (ratio > 1)
      size = {static_cast<int>(std::floor(picture.width / ratio)),
              static_cast<int>(std::floor(picture.height / ratio))};
    if (size.width < 1 || size.height < 1)
      return invalid(fmt::format("{} x {} pixels: the picture is too thin for the model",
                                 picture.width, picture.height));
    const int block = target_.patch_size * target_.merge_size;
    return PixelSize{(size.width - 1) / block + 1, (size.height - 1) / block + 1};
  }

  PixtralSettings settings_;
  PixtralTarget target_;
  PixelTable table_;
};

}  // namespace

Result<std::shared_ptr<const Processor>> make_pixtral_processor(const ProcessorFiles& files,
                                                                const PixtralTarget& target) {
  VALORA_TRY(settings, read_pixtral_settings(files.image, target));
  VALORA_CHECK(check_pixtral_tokens(files.both, target));
  return std::shared_ptr<const Processor>(std::make_shared<PixtralPictures>(settings, target));
}

}  // namespace valora::media
