// Gemma 3's image processor: the whole picture, resized to the tower's square.
#include <fmt/format.h>

#include "media/tile_patches.h"

namespace valora::media {
namespace {

constexpr std::string_view kGemma3Keys[] = {
    "do_resize",
    "size",
    "resample",
    "do_rescale",
    "do_normalize",
    "image_mean",
    "image_std",
    "rescale_factor",
    "image_processor_type",
    // Of the crops that do_pan_and_scan would add.
    "pan_and_scan_min_crop_size",
    "pan_and_scan_max_num_crops",
    "pan_and_scan_min_ratio_to_activate",
};
constexpr std::string_view kGemma3Types[] = {"Gemma3ImageProcessor", "Gemma3ImageProcessorFast",
                                             "Gemma3ImageProcessorPil"};
constexpr int kMaxGemma3Side = 1 << 14;

struct Gemma3Settings {
  Resample filter = Resample::kBilinear;
  PixelValues values{.mean = {0.5, 0.5, 0.5}, .std = {0.5, 0.5, 0.5}};
};

Result<PixelSize> read_square(const Json& json) {
  const auto it = json.find("size");
  if (it == json.end() || it->is_null()) return PixelSize{224, 224};
  if (!it->is_object() || !it->contains("height") || !it->contains("width"))
    return refuse_setting("size", "must hold height and width");
  VALORA_TRY(height, positive(*it, "height", 1, kMaxGemma3Side));
  VALORA_TRY(width, positive(*it, "width", 1, kMaxGemma3Side));
  return PixelSize{width, height};
}

Result<Gemma3Settings> read_gemma3_settings(const Json& json, const SquareTarget& target) {
  VALORA_TRY(crops, field_or(json, "do_pan_and_scan", false));
  if (crops) return refuse_setting("do_pan_and_scan", "is true: crops of pictures are not made");
  VALORA_CHECK(check_keys(json, kGemma3Keys));
  VALORA_CHECK(check_type(json, "image_processor_type", kGemma3Types));
  Gemma3Settings settings;
  VALORA_TRY(size, read_square(json));
  VALORA_TRY(do_resize, field_or(json, "do_resize", true));
  VALORA_TRY(filter, read_resample(json, settings.filter));
  VALORA_TRY(values, read_pixel_values(json, settings.values));
  if (!do_resize)
    return refuse_setting("do_resize", "is false, but the vision tower takes one size");
  if (size.width != target.image_size || size.height != target.image_size)
    return refuse_setting(
        "size", fmt::format("gives pictures of {} x {} pixels, but the vision tower takes {} x {}",
                            size.width, size.height, target.image_size, target.image_size));
  settings.filter = filter;
  settings.values = values;
  return settings;
}

// processor_config.json; null if there is none.
Status check_gemma3_tokens(const Json& both, const SquareTarget& target) {
  if (!both.is_object()) return {};
  VALORA_TRY(tokens, optional_field<int64_t>(both, "image_seq_length"));
  if (tokens && *tokens != target.tokens)
    return refuse_setting("image_seq_length", "is not the mm_tokens_per_image of config.json");
  return {};
}

class Gemma3Pictures final : public Processor {
 public:
  Gemma3Pictures(const Gemma3Settings& settings, const SquareTarget& target)
      : settings_(settings), target_(target), table_(make_pixel_table(settings.values)) {}

  Result<VisualInput> image(const Image& image) const override {
    const int side = target_.image_size / target_.patch_size;
    const TileTarget tile{.patch_size = target_.patch_size, .merge_size = 1};
    VisualInput input = make_tiles(MediaKind::kImage, 1, side, tile);
    input.tokens = target_.tokens;
    append_tile(resize_image(image, target_.image_size, target_.image_size, settings_.filter), {},
                side, tile, table_, input.patches.data());
    return input;
  }
  Result<VisualInput> video(const std::vector<Image>&, double,
                            const std::stop_token&) const override {
    return no_gemma3_videos();
  }
  Result<int64_t> image_tokens(int, int) const override { return int64_t{target_.tokens}; }
  Result<int64_t> video_tokens(int, int, int64_t) const override { return no_gemma3_videos(); }
  FrameSampler frame_sampler() const override {
    return [](const VideoInfo&) -> Result<std::vector<int64_t>> { return no_gemma3_videos(); };
  }
  Digest settings_digest() const override {
    DigestBuilder digest;
    digest.add(std::string_view("gemma3")).add(target_.image_size).add(target_.patch_size);
    digest.add(target_.tokens).add(static_cast<int>(settings_.filter));
    add_to_digest(digest, settings_.values);
    return digest.finish();
  }

 private:
  static Error no_gemma3_videos() { return invalid("this model takes no videos", "messages"); }

  Gemma3Settings settings_;
  SquareTarget target_;
  PixelTable table_;
};

}  // namespace

Result<std::shared_ptr<const Processor>> make_gemma3_processor(const ProcessorFiles& files,
                                                               const SquareTarget& target) {
  VALORA_TRY(settings, read_gemma3_settings(files.image, target));
  VALORA_CHECK(check_gemma3_tokens(files.both, target));
  return std::shared_ptr<const Processor>(std::make_shared<Gemma3Pictures>(settings, target));
}

}  // namespace valora::media
