// Settings of preprocessor_config.json, processor_config.json and video_preprocessor_config.json
// for the processors of LLaVA-NeXT and LLaVA-OneVision.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "media/anyres_grid.h"
#include "media/processor.h"

namespace valora::media {

struct AnyresSettings {
  Resample filter = Resample::kBicubic;
  PixelValues values;
};

// Which frames are kept of a video file.
struct AnyresSampling {
  bool all = true;
  std::optional<int64_t> num_frames;  // instead of a rate
  std::optional<double> fps;
};

// json: an object. kUnprocessable names a setting that is unknown and neither null nor false, or
// that does not fit the target.
Result<AnyresSettings> read_anyres_settings(const Json& json, const AnyresTarget& target);
// Of videos, whose frames are not cut.
Result<AnyresSettings> read_anyres_videos(Json json, const AnyresTarget& target);
Result<AnyresSampling> read_anyres_sampling(const Json& json);
// What processor_config.json says of the number of tokens must be what the model makes. both: null
// if there is no such file.
Status check_anyres_tokens(const Json& both, const AnyresTarget& target);

Result<std::vector<int64_t>> sample_anyres(const VideoInfo& video, const AnyresSampling& sampling);

}  // namespace valora::media
