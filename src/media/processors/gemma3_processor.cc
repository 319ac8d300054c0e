// Gemma 3's image processor: the whole picture, resized to the tower's square.
#include <fmt/format.h>

#include "media/processors/processor.h"

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
    // Crops that only do_pan_and_scan would add.
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
  if (crops)
    return refuse_setting("do_pan_and_scan", "is true, but cropping pictures is not supported");
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

// both: processor_config.json; null if there is none.
Status check_gemma3_tokens(const Json& both, const SquareTarget& target) {
  if (!both.is_object()) return {};
  VALORA_TRY(tokens, optional_field<int64_t>(both, "image_seq_length"));
  if (tokens && *tokens != target.tokens)
    return refuse_setting("image_seq_length", "is not the mm_tokens_per_image of config.json");
  return {};
}

}  // namespace

Result<std::shared_ptr<const Processor>> make_gemma3_processor(const ProcessorFiles& files,
                                                               const SquareTarget& target) {
  VALORA_TRY(settings, read_gemma3_settings(files.image, target));
  VALORA_CHECK(check_gemma3_tokens(files.both, target));
  return make_square_processor(target, settings.filter, settings.values);
}

}  // namespace valora::media
