// Settings of preprocessor_config.json, processor_config.json and video_preprocessor_config.json
// for the processors of LLaVA-NeXT and LLaVA-OneVision.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "media/processors/anyres_grid.h"
#include "media/processors/processor.h"

namespace valora::media {

struct AnyresSettings {
  Resample filter = Resample::kBicubic;
  PixelValues values;
};

// Which frames of a video file are kept.
struct AnyresSampling {
  bool all = true;
  std::optional<int64_t> num_frames;  // instead of a rate
  std::optional<double> fps;
};

// json: an object. kUnprocessable names a setting that does not fit the target, or that is unknown
// and neither null nor false.
Result<AnyresSettings> read_anyres_settings(const Json& json, const AnyresTarget& target);
// For videos, whose frames are not tiled.
Result<AnyresSettings> read_anyres_videos(Json json, const AnyresTarget& target);
Result<AnyresSampling> read_anyres_sampling(const Json& json);
// The token count in processor_config.json must be the one the model produces. both: null if there
// is no such file.
Status check_anyres_tokens(const Json& both, const AnyresTarget& target);

Result<std::vector<int64_t>> sample_anyres(const VideoInfo& video, const AnyresSampling& sampling);

}  // namespace valora::media
