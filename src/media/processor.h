// A family's image processor: pictures or frames to the flat patches that its vision tower reads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/json.h"
#include "media/fetch.h"
#include "media/image.h"
#include "media/processor_settings.h"
#include "media/video.h"

namespace valora::media {

// One image or video, ready for the vision tower.
struct VisualInput {
  MediaKind kind = MediaKind::kImage;
  // Identity of the pixels: raw bytes, kind and every processor setting that changes the result.
  // Set by the Loader, which knows the bytes.
  Digest digest;
  // Patch grid: temporal, height, width in patches.
  int grid_t = 1, grid_h = 0, grid_w = 0;
  int patch_dim = 0;           // floats a patch
  std::vector<float> patches;  // [grid_t * grid_h * grid_w, patch_dim], normalised
  int tokens = 0;              // language-model tokens it stands for
  int64_t patch_count() const { return int64_t{grid_t} * grid_h * grid_w; }
  double seconds_per_grid = 0;  // of a video: time between temporal positions (Qwen2.5-VL)
};

class Processor {
 public:
  virtual ~Processor() = default;
  virtual Result<VisualInput> image(const Image& image) const = 0;
  // Frames of one size; padded to the family's temporal patch. sampled_fps: frames given per second
  // of the video; 0 where nobody knows (a list of frames): the family's default.
  virtual Result<VisualInput> video(const std::vector<Image>& frames, double sampled_fps) const = 0;
  // What image() and video() would give as VisualInput::tokens, from the size alone.
  virtual Result<int64_t> image_tokens(int width, int height) const = 0;
  virtual Result<int64_t> video_tokens(int width, int height, int64_t frames) const = 0;
  virtual FrameSampler frame_sampler() const = 0;
  // Goes into digests: everything configurable that changes pixels or grid.
  virtual Digest settings_digest() const = 0;
};

// The square that a CLIP tower takes.
struct ClipTarget {
  int image_size = 336;  // pixels a side
  int patch_size = 14;
  bool class_token = false;  // the class token stands for a language-model token, too
};

// preprocessor_config.json of LLaVA-1.5 (transformers' CLIPImageProcessor, its PIL path, bit for
// bit): shorter edge resized, centre crop, rescale, normalise; rows are patches in reading order,
// channel by channel. Aspect ratios over 200 are refused. Settings that cannot give the target:
// kUnprocessable.
Result<std::shared_ptr<const Processor>> make_clip_processor(const Json& image_json,
                                                             const ClipTarget& target);

// preprocessor_config.json of Qwen2-VL and Qwen2.5-VL (Qwen2VLImageProcessor): smart_resize with
// min/max_pixels or size.{shortest_edge,longest_edge}, rescale, normalise, patchify
// (temporal_patch_size, patch_size, merge_size). Rows are ordered merge-block-wise as the
// reference's. video_json: video_preprocessor_config.json where the folder has one, else null: then
// image_json holds for videos too, as in the reference. Frames are resized by the PIL-equal bicubic
// of images; the reference resizes videos with torchvision, whose antialiased bicubic rounds
// differently. A setting that is unknown or unsupported and set, or patches other than the vision
// tower's: kUnprocessable naming it.
Result<std::shared_ptr<const Processor>> make_qwen2_vl_processor(const Json& image_json,
                                                                 const Json& video_json,
                                                                 const PatchLayout& tower);

}  // namespace valora::media
