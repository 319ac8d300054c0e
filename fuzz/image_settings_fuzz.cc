// Image processor settings. Input parts: preprocessor_config.json, video_preprocessor_config.json
// (empty: no file), sizes of images and videos to process.
#include <algorithm>

#include "check.h"
#include "input.h"
#include "media/processors/anyres_grid.h"
#include "media/processors/processor.h"

using namespace valora;

namespace {

constexpr int64_t kMaxTokens = 64;

void check_tokens(const media::VisualInput& visual, int64_t tokens) {
  FUZZ_CHECK(visual.tokens == tokens && tokens > 0);
  FUZZ_CHECK(visual.patches.size() ==
             size_t(visual.grid_t) * visual.grid_h * visual.grid_w * size_t(visual.patch_dim));
}

void ask(const media::Processor& processor, int width, int height, int frames) {
  const auto image_tokens = processor.image_tokens(width, height);
  const auto video_tokens = processor.video_tokens(width, height, frames);
  if (width > 64 || height > 64) return;
  const media::Image picture{width, height, std::vector<uint8_t>(size_t(width) * height * 3, 7)};
  if (image_tokens.ok() && *image_tokens <= kMaxTokens) {
    const auto image = processor.image(picture);
    if (image.ok()) check_tokens(*image, *image_tokens);
  }
  if (frames > 0 && frames <= 8 && video_tokens.ok() && *video_tokens <= kMaxTokens) {
    const auto video = processor.video(std::vector<media::Image>(frames, picture), 0);
    if (video.ok()) check_tokens(*video, *video_tokens);
  }
}

// The input sizes of a vision tower to fit the settings, which may contain any values.
int size_in(const Json& json, const char* key, int fallback) {
  const auto size = field_or<int32_t>(json.is_object() ? json : Json::object(), key, fallback);
  return size.ok() ? *size : fallback;
}

int crop_of(const Json& json) {
  const Json crop = json.is_object() ? json.value("crop_size", Json()) : Json();
  return std::clamp(size_in(crop, "height", 224), 1, 1 << 13);
}

void sample(const media::Processor& processor, int64_t frames, double fps) {
  const auto indices = processor.frame_sampler()({frames, fps, 64, 64});
  if (!indices.ok()) return;
  FUZZ_CHECK(!indices->empty());
  int64_t last = 0;
  for (const int64_t index : *indices) {
    FUZZ_CHECK(index >= last && index < frames);
    last = index;
  }
}

void exercise(const Result<std::shared_ptr<const media::Processor>>& processor,
              fuzz::Input& input) {
  if (!processor.ok()) {
    (void)Json(processor.error().message).dump();
    return;
  }
  (void)(*processor)->settings_digest();
  for (int asked = 0; asked < 4; ++asked) {
    const int width = input.word(), height = input.word(), frames = input.byte();
    ask(**processor, width, height, frames);
    if (const auto several = (*processor)->of_several()) ask(*several, width, height, frames);
    sample(**processor, int64_t{input.word()} << (input.byte() % 47), input.byte() / 4.0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const auto image = parse_json(input.part(), "image");
  const std::string_view video_text = input.part();
  const auto video = video_text.empty() ? Result<Json>(Json()) : parse_json(video_text, "video");
  if (!image.ok() || !video.ok()) return 0;
  const media::PatchLayout tower{size_in(*image, "patch_size", 14),
                                 size_in(*image, "temporal_patch_size", 2),
                                 size_in(*image, "merge_size", 2)};
  const int side = crop_of(*image);
  exercise(media::make_qwen2_vl_processor(*image, *video, tower), input);
  exercise(media::make_clip_processor(*image, {side, std::max(1, side / 4), side % 2 == 1}), input);
  // Large tiles take seconds.
  const Json tile = image->is_object() ? image->value("max_image_size", Json()) : Json();
  if (size_in(tile, "longest_edge", 364) <= 64)
    exercise(media::make_tile_processor({*image, {}, *video}, {side % 8 + 1, side % 3 + 1}), input);
  const Json canvas = image->is_object() ? image->value("size", Json()) : Json();
  if (size_in(canvas, "height", 384) <= 64 && size_in(*image, "max_patches", 12) <= 64)
    exercise(media::make_canvas_processor({*image, *video, {}}, {side % 8 + 1, side % 3 + 1}),
             input);
  exercise(media::make_pixtral_processor({*image, *video, {}}, {side % 16 + 1, side % 3 + 1, 64}),
           input);
  const Json pinpoints = image->is_object() ? image->value("image_grid_pinpoints", Json()) : Json();
  const auto grids = media::parse_pinpoints(pinpoints);
  if (!grids.ok() || side > 64) return 0;
  exercise(media::make_anyres_processor({*image, *video, {}},
                                        {side, side % 8 + 1, *grids, *grids, side % 3}),
           input);
  return 0;
}
