// The image processor of LLaVA-NeXT and LLaVA-OneVision: the whole picture as a square, plus the
// picture at one of several resolutions, cut into tiles.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "media/processors/anyres_settings.h"
#include "media/processors/processor.h"
#include "media/processors/tile_patches.h"
#include "media/video/stop.h"

namespace valora::media {
namespace {

using Colour = std::array<uint8_t, kChannels>;

// The picture centred in a larger one; if the padding is odd, the smaller part comes first.
Image centred(const Image& image, PixelSize size, const Colour& around) {
  Image out{size.width, size.height, {}};
  out.rgb.resize(size_t(size.width) * size.height * kChannels);
  for (size_t i = 0; i < out.rgb.size(); ++i) out.rgb[i] = around[i % kChannels];
  const int left = (size.width - image.width) / 2, top = (size.height - image.height) / 2;
  for (int y = 0; y < image.height; ++y) {
    const uint8_t* row = &image.rgb[size_t(y) * image.width * kChannels];
    std::copy(row, row + size_t(image.width) * kChannels,
              &out.rgb[(size_t(top + y) * size.width + left) * kChannels]);
  }
  return out;
}

class AnyresProcessor final : public Processor {
 public:
  struct Videos {
    AnyresSettings settings;
    AnyresSampling sampling;
  };
  AnyresProcessor(const AnyresSettings& settings, const AnyresTarget& target,
                  const std::optional<Videos>& videos)
      : settings_(settings),
        target_(target),
        tiles_{target.image_size, target.image_size / target.patch_size, target.most_tiles},
        patches_{target.patch_size, 1},
        table_(make_pixel_table(settings.values)),
        videos_(videos) {
    if (videos_) video_table_ = make_pixel_table(videos_->settings.values);
  }

  Result<std::shared_ptr<const Processor>> with(const ProcessorOverrides& asked) const override {
    if (!videos_) return Processor::with(asked);
    VALORA_TRY(rule, frame_choice(asked));
    const auto changed = std::make_shared<AnyresProcessor>(*this);
    if (rule) changed->uniform_ = rule;
    return std::shared_ptr<const Processor>(changed);
  }
  std::shared_ptr<const Processor> of_several() const override {
    if (target_.most_tiles == 0) return nullptr;
    const auto changed = std::make_shared<AnyresProcessor>(*this);
    changed->squares_ = true;
    return changed;
  }

  Result<VisualInput> image(const Image& image) const override {
    const int tile = tiles_.tile, side = tiles_.side;
    if (squares_) {
      VisualInput input = make_tiles(MediaKind::kImage, 1, side, patches_);
      input.tokens = static_cast<int>(square_tokens());
      append_tile(resized(square(image), {tile, tile}), {}, side, patches_, table_,
                  input.patches.data());
      return input;
    }
    const PixelSize picture{image.width, image.height};
    const PixelSize resolution = best_resolution(picture, target_.pinpoints);
    VALORA_TRY(unpadded, unpadded_tiles(picture, resolution, tiles_));
    const int rows = resolution.height / tile, columns = resolution.width / tile;
    VisualInput input = make_tiles(MediaKind::kImage, 1 + rows * columns, side, patches_);
    input.tile_rows = rows;
    input.tile_columns = columns;
    input.unpadded = unpadded;
    input.tokens = static_cast<int>(tokens_of(unpadded));
    float* out =
        append_tile(resized(image, {tile, tile}), {}, side, patches_, table_, input.patches.data());
    const Image canvas =
        centred(resized(image, size_within(picture, resolution)), resolution, Colour{});
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < columns; ++column)
        out = append_tile(canvas, {column * tile, row * tile}, side, patches_, table_, out);
    return input;
  }

  Result<VisualInput> video(const std::vector<Image>& frames, double,
                            const std::stop_token& stop) const override {
    if (!videos_) return no_anyres_videos();
    if (frames.empty()) return invalid("the video has no frames");
    const int tile = tiles_.tile, side = tiles_.side;
    VisualInput input =
        make_tiles(MediaKind::kVideo, static_cast<int>(frames.size()), side, patches_);
    VALORA_TRY(tokens, video_tokens(0, 0, int64_t(frames.size())));
    input.tokens = static_cast<int>(tokens);
    float* out = input.patches.data();
    for (const Image& frame : frames) {
      VALORA_CHECK(check_stop(stop));
      out = append_tile(resize_image(frame, tile, tile, videos_->settings.filter), {}, side,
                        patches_, video_table_, out);
    }
    return input;
  }

  Result<int64_t> image_tokens(int width, int height) const override {
    if (width < 1 || height < 1) return invalid("the picture has no pixels");
    if (squares_) return square_tokens();
    const PixelSize picture{width, height};
    VALORA_TRY(unpadded,
               unpadded_tiles(picture, best_resolution(picture, target_.pinpoints), tiles_));
    return tokens_of(unpadded);
  }
  // Two by two patches become one token; one token follows all frames.
  Result<int64_t> video_tokens(int, int, int64_t frames) const override {
    if (!videos_) return no_anyres_videos();
    const int64_t pooled = (tiles_.side + 1) / 2;
    return frames * pooled * pooled + 1;
  }
  FrameSampler frame_sampler() const override {
    if (!videos_)
      return [](const VideoInfo&) -> Result<std::vector<int64_t>> { return no_anyres_videos(); };
    if (uniform_)
      return [rule = *uniform_](const VideoInfo& video) { return sample_frames(video, rule); };
    return [sampling = videos_->sampling](const VideoInfo& video) {
      return sample_anyres(video, sampling);
    };
  }

  Digest settings_digest() const override {
    DigestBuilder digest;
    digest.add(std::string_view("anyres")).add(target_.image_size).add(target_.patch_size);
    digest.add(target_.most_tiles).add(squares_);
    for (const PixelSize& size : target_.pinpoints) digest.add(size.width).add(size.height);
    add_settings(digest, settings_);
    if (videos_) {
      add_settings(digest, videos_->settings);
      const AnyresSampling& s = videos_->sampling;
      digest.add(s.all).add(s.num_frames.value_or(0)).add(s.fps.value_or(0));
    }
    if (uniform_) add_to_digest(digest, FrameRule(*uniform_));
    return digest.finish();
  }

 private:
  static void add_settings(DigestBuilder& digest, const AnyresSettings& settings) {
    digest.add(static_cast<int>(settings.filter));
    add_to_digest(digest, settings.values);
  }
  static Error no_anyres_videos() {
    return invalid("this model does not support videos", "messages");
  }

  int64_t square_tokens() const { return int64_t{tiles_.side} * tiles_.side + 1; }
  // The whole picture's tokens, then rows with one extra token at the end of each.
  int64_t tokens_of(const UnpaddedTiles& unpadded) const {
    return int64_t{tiles_.side} * tiles_.side + int64_t{unpadded.rows} * (unpadded.columns + 1);
  }
  Image resized(const Image& image, PixelSize size) const {
    return resize_image(image, size.width, size.height, settings_.filter);
  }
  Image square(const Image& image) const {
    Colour mean;
    for (int c = 0; c < kChannels; ++c)
      mean[c] = static_cast<uint8_t>(std::clamp(settings_.values.mean[c] * 255, 0.0, 255.0));
    const int side = std::max(image.width, image.height);
    return centred(image, {side, side}, mean);
  }

  AnyresSettings settings_;
  AnyresTarget target_;
  AnyresTiles tiles_;
  TileTarget patches_;
  PixelTable table_, video_table_{};
  std::optional<Videos> videos_;
  std::optional<UniformSampling> uniform_;  // replaces the videos' own sampling
  bool squares_ = false;                    // for prompts with several pictures
};

}  // namespace

Result<std::shared_ptr<const Processor>> make_anyres_processor(const ProcessorFiles& files,
                                                               const AnyresTarget& target) {
  if (!fits(target.pinpoints, target.image_size))
    return refuse_setting("image_grid_pinpoints", "has sides that are not multiples of the tile's");
  VALORA_TRY(settings, read_anyres_settings(files.image, target));
  VALORA_CHECK(check_anyres_tokens(files.both, target));
  std::optional<AnyresProcessor::Videos> videos;
  if (target.most_tiles > 0) {
    const Json& json = files.video.is_null() ? files.image : files.video;
    if (!json.is_object()) return invalid("the video processor's settings are not a JSON object");
    VALORA_TRY(sampling, read_anyres_sampling(json));
    VALORA_TRY(frames, read_anyres_videos(json, target));
    videos = {frames, sampling};
  }
  return std::shared_ptr<const Processor>(
      std::make_shared<AnyresProcessor>(settings, target, videos));
}

}  // namespace valora::media
