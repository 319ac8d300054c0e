#include "media/processors/processor_settings.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace valora::media {
namespace {

// Settings that do not affect the pixels of a decoded RGB picture.
constexpr std::string_view kWithoutEffect[] = {
    "do_convert_rgb",       "processor_class",  "feature_extractor_type", "auto_map",
    "return_tensors",       "data_format",      "input_data_format",      "disable_grouping",
    "default_to_square",    "image_seq_length", "_valid_processor_keys",  "device",
    "transformers_version",
};

constexpr int64_t kLanczos = 1, kBilinear = 2, kBicubic = 3;  // PIL's filter numbers

bool is_one_of(std::string_view key, std::span<const std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// Reads one number for all channels, or three numbers.
Result<std::array<double, 3>> channels(const Json& json, std::string_view key,
                                       std::array<double, 3> fallback) {
  const auto it = json.find(std::string(key));
  if (it == json.end() || it->is_null()) return fallback;
  std::array<double, 3> values;
  for (size_t c = 0; c < values.size(); ++c) {
    if (it->is_array() && it->size() != values.size())
      return refuse_setting(key, "must have three numbers");
    const Json& value = it->is_array() ? (*it)[c] : *it;
    if (!value.is_number()) return refuse_setting(key, "must be a number or three");
    values[c] = value.get<double>();
  }
  return values;
}

}  // namespace

Error refuse_setting(std::string_view key, std::string_view why) {
  return unprocessable(fmt::format("the image processor's setting \"{}\" {}", key, why),
                       std::string(key));
}

Status check_keys(const Json& json, std::span<const std::string_view> known) {
  if (!json.is_object()) return invalid("the image processor's settings are not a JSON object");
  for (const auto& [key, value] : json.items()) {
    const bool unset = value.is_null() || (value.is_boolean() && !value.get<bool>());
    if (!unset && !is_one_of(key, known) && !is_one_of(key, kWithoutEffect))
      return refuse_setting(key, "is not supported and may change pixels");
  }
  return {};
}

Status check_type(const Json& json, std::string_view key, std::span<const std::string_view> types) {
  VALORA_TRY(type, optional_field<std::string>(json, key));
  if (type && !is_one_of(*type, types))
    return refuse_setting(key, fmt::format("names another processor: {}", *type));
  return {};
}

Status check_bicubic(const Json& json) {
  VALORA_TRY(do_resize, field_or(json, "do_resize", true));
  VALORA_TRY(resample, field_or(json, "resample", kBicubic));
  if (do_resize && resample != kBicubic)
    return refuse_setting("resample", "is not 3: only bicubic is supported");
  return {};
}

Result<Resample> read_resample(const Json& json, Resample fallback) {
  VALORA_TRY(filter, optional_field<int64_t>(json, "resample"));
  if (!filter) return fallback;
  if (*filter == kBicubic) return Resample::kBicubic;
  if (*filter == kLanczos) return Resample::kLanczos;
  if (*filter == kBilinear) return Resample::kBilinear;
  return refuse_setting("resample",
                        "is none of 1, 2 and 3, which are Lanczos, bilinear and bicubic");
}

Result<int> positive(const Json& json, std::string_view key, int fallback, int most) {
  VALORA_TRY(value, field_or<int32_t>(json, key, fallback));
  if (value < 1 || value > most)
    return refuse_setting(key, fmt::format("must be between 1 and {}", most));
  return value;
}

Result<PixelValues> read_pixel_values(const Json& json, PixelValues values) {
  VALORA_TRY(do_rescale, field_or(json, "do_rescale", true));
  VALORA_TRY(do_normalize, field_or(json, "do_normalize", true));
  VALORA_TRY(rescale_factor, field_or(json, "rescale_factor", values.rescale_factor));
  VALORA_TRY(mean, channels(json, "image_mean", values.mean));
  VALORA_TRY(std, channels(json, "image_std", values.std));
  if (std::any_of(std.begin(), std.end(), [](double s) { return s == 0; }))
    return refuse_setting("image_std", "has a zero");
  return PixelValues{do_rescale, do_normalize, rescale_factor, mean, std};
}

void add_to_digest(DigestBuilder& digest, const PixelValues& v) {
  digest.add(v.do_rescale).add(v.do_normalize).add(v.rescale_factor);
  digest.add(std::span<const double>(v.mean)).add(std::span<const double>(v.std));
}

PixelTable make_pixel_table(const PixelValues& v) {
  PixelTable table;
  for (int c = 0; c < kChannels; ++c) {
    for (int byte = 0; byte < 256; ++byte) {
      float value = v.do_rescale ? static_cast<float>(byte * v.rescale_factor) : float(byte);
      if (v.do_normalize)
        value = (value - static_cast<float>(v.mean[c])) / static_cast<float>(v.std[c]);
      table[c][byte] = value;
    }
  }
  return table;
}

}  // namespace valora::media
