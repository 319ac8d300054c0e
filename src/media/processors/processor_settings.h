// preprocessor_config.json settings shared by all families' image processors.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "base/digest.h"
#include "base/json/json.h"
#include "base/result.h"
#include "media/image/image.h"

namespace valora::media {

inline constexpr int kChannels = 3;

// How a byte becomes a float.
struct PixelValues {
  bool do_rescale = true;
  bool do_normalize = true;
  double rescale_factor = 1.0 / 255.0;
  std::array<double, 3> mean{0.48145466, 0.4578275, 0.40821073};
  std::array<double, 3> std{0.26862954, 0.26130258, 0.27577711};
};

// values: defaults for absent keys.
Result<PixelValues> read_pixel_values(const Json& json, PixelValues values = {});
void add_to_digest(DigestBuilder& digest, const PixelValues& values);

// The value of every byte per channel, rounded in the reference's order: rescaled as double, stored
// as float, normalised as float.
using PixelTable = std::array<std::array<float, 256>, kChannels>;
PixelTable make_pixel_table(const PixelValues& values);

// The patches that a vision tower reads; the processor's settings must match.
struct PatchLayout {
  int patch_size = 14;
  int temporal_patch_size = 2;
  int merge_size = 2;
};

Error refuse_setting(std::string_view key, std::string_view why);
// Refuses a key that is set, not in `known`, and able to change pixels in some family.
Status check_keys(const Json& json, std::span<const std::string_view> known);
// Refuses the settings of another processor. An absent `key` is accepted.
Status check_type(const Json& json, std::string_view key, std::span<const std::string_view> types);
Status check_bicubic(const Json& json);
// Reads "resample": Lanczos, bilinear or bicubic.
Result<Resample> read_resample(const Json& json, Resample fallback);
Result<int> positive(const Json& json, std::string_view key, int fallback, int most);

}  // namespace valora::media
