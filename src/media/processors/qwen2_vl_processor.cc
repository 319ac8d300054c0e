#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "media/processors/processor.h"
#include "media/processors/qwen2_vl_overrides.h"
#include "media/processors/qwen2_vl_settings.h"
#include "media/video/stop.h"

namespace valora::media {
namespace {

// Per picture or video: 2 GiB of floats.
constexpr int64_t kMaxValues = int64_t{1} << 29;

// Resizes pictures of one kind and cuts them into patches.
class Patcher {
 public:
  explicit Patcher(const PatchSettings& settings)
      : settings_(settings), table_(make_pixel_table(settings.values)) {}

  const PatchSettings& settings() const { return settings_; }
  int patch_dim() const {
    return kChannels * settings_.temporal_patch_size * settings_.patch_size * settings_.patch_size;
  }

  // The size to which such a picture is resized, in whole merge blocks.
  Result<PixelSize> target_size(int width, int height, int64_t frames) const {
    const int factor = settings_.patch_size * settings_.merge_size;
    if (settings_.resized) return resized_size(*settings_.resized, factor);
    if (settings_.do_resize && settings_.whole_video)
      return smart_resize_video(width, height, frames, settings_.temporal_patch_size, factor,
                                bounds_of_all(frames, factor));
    if (settings_.do_resize)
      return smart_resize(width, height, factor, bounds_of(frames, factor),
                          settings_.whole_sides ? factor : 0);
    if (width <= 0 || height <= 0 || width % factor != 0 || height % factor != 0)
      return invalid(fmt::format(
          "{} x {} pixels are not a multiple of {} and the model's processor does not resize",
          width, height, factor));
    return PixelSize{width, height};
  }

  Result<int64_t> tokens(int width, int height, int64_t frames) const {
    VALORA_TRY(size, target_size(width, height, frames));
    const int64_t factor = settings_.patch_size * settings_.merge_size;
    return grid_t(frames) * (size.width / factor) * (size.height / factor);
  }

  // Fills an incomplete last group by repeating the last frame.
  Result<VisualInput> patches(std::span<const Image> frames, MediaKind kind,
                              const std::stop_token& stop = {}) const {
    const Image& first = frames.front();
    VALORA_TRY(size, target_size(first.width, first.height, int64_t(frames.size())));
    VALORA_TRY(tokens, this->tokens(first.width, first.height, int64_t(frames.size())));
    if (tokens > kMaxValues / settings_.merge_size / settings_.merge_size / patch_dim())
      return invalid(fmt::format("the picture would become more than {} values", kMaxValues),
                     "messages");
    VisualInput input;
    input.kind = kind;
    input.grid_t = static_cast<int>(grid_t(int64_t(frames.size())));
    input.grid_h = size.height / settings_.patch_size;
    input.grid_w = size.width / settings_.patch_size;
    input.seen_width = size.width;
    input.seen_height = size.height;
    input.patch_dim = patch_dim();
    input.tokens = static_cast<int>(tokens);
    input.separable = true;
    input.patches.resize(size_t(input.grid_t) * input.grid_h * input.grid_w * input.patch_dim);

    const size_t group = settings_.temporal_patch_size;
    float* out = input.patches.data();
    for (size_t begin = 0; begin < frames.size(); begin += group) {
      VALORA_CHECK(check_stop(stop));
      std::vector<Image> resized;
      for (size_t i = begin; i < std::min(begin + group, frames.size()); ++i)
        resized.push_back(resize_bicubic(frames[i], size.width, size.height));
      out = append_group(resized, input, out);
    }
    return input;
  }

 private:
  // The bounds of each frame in a video of `frames` frames, rounded as in the reference.
  PixelBounds bounds_of(int64_t frames, int factor) const {
    PixelBounds bounds = settings_.pixels;
    const int64_t group = settings_.temporal_patch_size;
    const auto least = static_cast<double>(static_cast<int64_t>(bounds.min * 1.05));
    if (settings_.total_pixels > 0) {
      // qwen_vl_utils divides by the number of frames in whole groups, and does not round.
      const double share = settings_.total_pixels / double(grid_t(frames) * group) * double(group);
      bounds.max = std::min(bounds.max, std::max(share, least));
    } else if (settings_.video_tokens > 0) {
      const auto budget =
          static_cast<int64_t>(static_cast<double>(settings_.video_tokens * factor * factor) * 0.9);
      const int64_t share = budget * group / std::max<int64_t>(1, frames);
      bounds.max = std::max(std::min(bounds.max, double(share)), least);
    }
    return bounds;
  }

  // The bounds for all frames of a video together.
  PixelBounds bounds_of_all(int64_t frames, int factor) const {
    PixelBounds bounds = settings_.pixels;
    if (settings_.video_tokens == 0) return bounds;
    const double most = double(settings_.video_tokens * factor * factor),
                 share = std::floor(bounds.max / double(frames));
    bounds.max = std::max(std::min(most, share), std::floor(bounds.min * 1.05)) * double(frames);
    return bounds;
  }

  int64_t grid_t(int64_t frames) const {
    return (frames + settings_.temporal_patch_size - 1) / settings_.temporal_patch_size;
  }

  // The rows of one temporal group: merge blocks in reading order, patches within each block.
  float* append_group(std::span<const Image> group, const VisualInput& input, float* out) const {
    const int merge = settings_.merge_size;
    for (int block_y = 0; block_y < input.grid_h; block_y += merge)
      for (int block_x = 0; block_x < input.grid_w; block_x += merge)
        for (int y = block_y; y < block_y + merge; ++y)
          for (int x = block_x; x < block_x + merge; ++x) out = append_patch(group, y, x, out);
    return out;
  }

  // One row: ordered by channel, frame, then pixel of the patch.
  float* append_patch(std::span<const Image> group, int patch_y, int patch_x, float* out) const {
    const int side = settings_.patch_size;
    for (int c = 0; c < kChannels; ++c) {
      const std::array<float, 256>& values = table_[c];
      for (int t = 0; t < settings_.temporal_patch_size; ++t) {
        const Image& frame = group[std::min<size_t>(t, group.size() - 1)];
        for (int y = 0; y < side; ++y) {
          const uint8_t* pixel =
              &frame.rgb[((size_t(patch_y) * side + y) * frame.width + size_t(patch_x) * side) *
                             kChannels +
                         c];
          for (int x = 0; x < side; ++x, pixel += kChannels) *out++ = values[*pixel];
        }
      }
    }
    return out;
  }

  PatchSettings settings_;
  PixelTable table_;
};

void add_to_digest(DigestBuilder& digest, const PatchSettings& s) {
  digest.add(s.do_resize).add(s.pixels.min).add(s.pixels.max);
  digest.add(s.total_pixels).add(s.whole_sides).add(s.resized.has_value());
  if (s.resized) digest.add(s.resized->width).add(s.resized->height);
  add_to_digest(digest, s.values);
  digest.add(s.patch_size).add(s.temporal_patch_size).add(s.merge_size).add(s.video_tokens);
  digest.add(s.whole_video);
}

// preprocessor_config.json and config.json may disagree.
Status check_layout(const PatchSettings& settings, const PatchLayout& tower, const char* what) {
  const auto check = [&](const char* key, int have, int want) -> Status {
    if (have == want) return {};
    return refuse_setting(
        key, fmt::format("is {} for {}, but the vision tower takes {}", have, what, want));
  };
  VALORA_CHECK(check("patch_size", settings.patch_size, tower.patch_size));
  VALORA_CHECK(
      check("temporal_patch_size", settings.temporal_patch_size, tower.temporal_patch_size));
  return check("merge_size", settings.merge_size, tower.merge_size);
}

class Qwen2VlProcessor final : public Processor {
 public:
  Qwen2VlProcessor(const PatchSettings& image, const PatchSettings& video,
                   const FrameSettings& frames)
      : images_(image), videos_(video), frames_(frames) {}

  Result<std::shared_ptr<const Processor>> with(
      const ProcessorOverrides& overrides) const override {
    PatchSettings image = images_.settings(), video = videos_.settings();
    FrameSettings frames = frames_;
    if (overrides.kind == MediaKind::kImage) {
      VALORA_CHECK(override_sizes(image, overrides));
    } else {
      VALORA_CHECK(override_sizes(video, overrides));
      VALORA_CHECK(override_frames(frames, overrides));
    }
    return std::shared_ptr<const Processor>(
        std::make_shared<Qwen2VlProcessor>(image, video, frames));
  }

  Result<VisualInput> image(const Image& image) const override {
    return images_.patches(std::span(&image, 1), MediaKind::kImage);
  }

  Result<VisualInput> video(const std::vector<Image>& frames, double sampled_fps,
                            const std::stop_token& stop) const override {
    if (frames.empty()) return invalid("the video has no frames");
    for (const Image& frame : frames)
      if (frame.width != frames[0].width || frame.height != frames[0].height)
        return invalid("the frames of the video differ in size");
    VALORA_TRY(input, videos_.patches(frames, MediaKind::kVideo, stop));
    const double fps = sampled_fps > 0 ? sampled_fps : frames_.rate.value_or(frames_.model.fps);
    input.seconds_per_grid = videos_.settings().temporal_patch_size / fps;
    return input;
  }

  Result<int64_t> image_tokens(int width, int height) const override {
    return images_.tokens(width, height, 1);
  }
  Result<int64_t> video_tokens(int width, int height, int64_t frames) const override {
    return videos_.tokens(width, height, frames);
  }

  FrameSampler frame_sampler() const override {
    return [rule = frames_.rule](const VideoInfo& video) { return sample_frames(video, rule); };
  }
  double sampled_fps(const VideoInfo& video, int64_t kept) const override {
    return frames_.rate ? *frames_.rate : sampled_rate(video, kept, frames_.rule);
  }

  std::vector<double> patch_times(const VideoInfo& video,
                                  std::span<const int64_t> kept) const override {
    if (!videos_.settings().whole_video) return {};
    const bool counted = frames_.rate.has_value() || !(video.fps > 0);
    const double fps = counted ? frames_.rate.value_or(frames_.model.fps) : video.fps;
    const auto time = [&](size_t i) { return double(counted ? int64_t(i) : kept[i]) / fps; };
    std::vector<double> times;
    const size_t group = videos_.settings().temporal_patch_size;
    for (size_t begin = 0; begin < kept.size(); begin += group)
      times.push_back((time(begin) + time(std::min(begin + group, kept.size()) - 1)) / 2);
    return times;
  }

  Digest settings_digest() const override {
    DigestBuilder digest;
    digest.add(std::string_view("qwen2-vl"));
    add_to_digest(digest, images_.settings());
    add_to_digest(digest, videos_.settings());
    media::add_to_digest(digest, frames_.rule);
    return digest.add(frames_.model.fps).add(frames_.rate.value_or(0)).finish();
  }

 private:
  Patcher images_;
  Patcher videos_;
  FrameSettings frames_;
};

// If video_json is null, image_json also applies to videos.
Result<std::shared_ptr<const Processor>> make_processor(
    const Json& image_json, const Json& video_json, const PatchLayout& tower,
    Result<PatchSettings> (*video_settings)(const Json&)) {
  VALORA_TRY(image, read_image_settings(image_json));
  const Json& for_videos = video_json.is_null() ? image_json : video_json;
  VALORA_TRY(video, video_settings(for_videos));
  VALORA_TRY(sampling, read_frame_sampling(for_videos));
  sampling.both_ends = video.whole_video;
  VALORA_CHECK(check_layout(image, tower, "images"));
  VALORA_CHECK(check_layout(video, tower, "videos"));
  return std::shared_ptr<const Processor>(
      std::make_shared<Qwen2VlProcessor>(image, video, FrameSettings{sampling, sampling, {}}));
}

}  // namespace

Result<std::shared_ptr<const Processor>> make_qwen2_vl_processor(const Json& image_json,
                                                                 const Json& video_json,
                                                                 const PatchLayout& tower) {
  return make_processor(image_json, video_json, tower, read_video_settings);
}

Result<std::shared_ptr<const Processor>> make_qwen3_vl_processor(const Json& image_json,
                                                                 const Json& video_json,
                                                                 const PatchLayout& tower) {
  return make_processor(image_json, video_json, tower, read_whole_video_settings);
}

}  // namespace valora::media
