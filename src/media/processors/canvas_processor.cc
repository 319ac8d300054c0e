// InternVL's image processor: a picture becomes the grid of square tiles with the closest aspect
// ratio, followed by the whole picture at a tile's size.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "media/processors/processor.h"
#include "media/processors/tile_patches.h"
#include "media/video/stop.h"

namespace valora::media {
namespace {

struct CanvasGrid {
  int columns = 1, rows = 1;
  int tiles() const { return columns * rows; }
};

// Ascending by number of tiles, then by width.
std::vector<CanvasGrid> canvas_grids(const CanvasSettings& settings) {
  std::vector<CanvasGrid> grids;
  for (int columns = 1; columns <= settings.most; ++columns)
    for (int rows = 1; columns * rows <= settings.most; ++rows)
      if (columns * rows >= settings.least) grids.push_back({columns, rows});
  std::ranges::stable_sort(grids, {}, &CanvasGrid::tiles);
  return grids;
}

class CanvasProcessor final : public Processor {
 public:
  CanvasProcessor(const CanvasSettings& settings, const TileTarget& target,
                  const std::optional<CanvasVideos>& videos)
      : settings_(settings),
        target_(target),
        side_(settings.tile / target.patch_size),
        grids_(canvas_grids(settings)),
        table_(make_pixel_table(settings.values)),
        videos_(videos) {
    if (videos_) video_table_ = make_pixel_table(videos_->values);
  }

  Result<std::shared_ptr<const Processor>> with(const ProcessorOverrides& asked) const override {
    if (!videos_) return no_canvas_videos();
    VALORA_TRY(rule, frame_choice(asked));
    const auto changed = std::make_shared<CanvasProcessor>(*this);
    if (rule) changed->uniform_ = rule;
    return std::shared_ptr<const Processor>(changed);
  }

  Result<VisualInput> image(const Image& image) const override {
    const CanvasGrid grid = closest(image.width, image.height);
    const int tile = settings_.tile, tiles = tiles_of(grid);
    VisualInput input = make_tiles(MediaKind::kImage, tiles, side_, target_);
    input.separable = true;
    float* out = input.patches.data();
    const Image canvas = resize_bicubic(image, grid.columns * tile, grid.rows * tile);
    for (int row = 0; row < grid.rows; ++row)
      for (int column = 0; column < grid.columns; ++column)
        out = append_tile(canvas, {column * tile, row * tile}, side_, target_, table_, out);
    if (tiles > grid.tiles())
      append_tile(resize_bicubic(image, tile, tile), {}, side_, target_, table_, out);
    return input;
  }

  Result<VisualInput> video(const std::vector<Image>& frames, double,
                            const std::stop_token& stop) const override {
    if (!videos_) return no_canvas_videos();
    if (frames.empty()) return invalid("the video has no frames");
    VisualInput input =
        make_tiles(MediaKind::kVideo, static_cast<int>(frames.size()), side_, target_);
    input.separable = true;
    float* out = input.patches.data();
    for (const Image& frame : frames) {
      VALORA_CHECK(check_stop(stop));
      out = append_tile(resize_bicubic(frame, settings_.tile, settings_.tile), {}, side_, target_,
                        video_table_, out);
    }
    return input;
  }

  Result<int64_t> image_tokens(int width, int height) const override {
    if (width < 1 || height < 1) return invalid("the picture has no pixels");
    return int64_t{tiles_of(closest(width, height))} * tokens_per_tile();
  }
  Result<int64_t> video_tokens(int, int, int64_t frames) const override {
    if (!videos_) return no_canvas_videos();
    return frames * tokens_per_tile();
  }
  FrameSampler frame_sampler() const override {
    if (!videos_)
      return [](const VideoInfo&) -> Result<std::vector<int64_t>> { return no_canvas_videos(); };
    if (uniform_)
      return [rule = *uniform_](const VideoInfo& video) { return sample_frames(video, rule); };
    return [sampling = videos_->sampling](const VideoInfo& video) {
      return sample_canvas(video, sampling);
    };
  }

  Digest settings_digest() const override {
    DigestBuilder digest;
    digest.add(std::string_view("canvas")).add(target_.patch_size).add(target_.merge_size);
    digest.add(settings_.tile)
        .add(settings_.least)
        .add(settings_.most)
        .add(settings_.adds_thumbnail);
    add_to_digest(digest, settings_.values);
    if (videos_) {
      const CanvasSampling& s = videos_->sampling;
      add_to_digest(digest, videos_->values);
      digest.add(s.all).add(s.num_frames.value_or(0)).add(s.fps.value_or(0));
      digest.add(s.first.value_or(-1));
    }
    if (uniform_) add_to_digest(digest, FrameRule(*uniform_));
    return digest.finish();
  }

 private:
  static Error no_canvas_videos() {
    return invalid("this model does not support videos", "messages");
  }

  int tokens_per_tile() const {
    const int tokens = side_ / target_.merge_size;
    return tokens * tokens;
  }
  int tiles_of(const CanvasGrid& grid) const {
    return grid.tiles() + (settings_.adds_thumbnail && grid.tiles() > 1 ? 1 : 0);
  }

  // Among grids with equally close ratios, the larger one, unless the picture fills less than half
  // of it.
  CanvasGrid closest(int width, int height) const {
    CanvasGrid best;
    if (settings_.most <= 1) return best;
    const double ratio = double(width) / height, area = double(width) * height;
    double distance = std::numeric_limits<double>::infinity();
    for (const CanvasGrid& grid : grids_) {
      const double from = std::abs(ratio - double(grid.columns) / grid.rows);
      const double half = 0.5 * settings_.tile * settings_.tile * grid.columns * grid.rows;
      if (from < distance || (from == distance && area > half)) best = grid;
      distance = std::min(distance, from);
    }
    return best;
  }

  CanvasSettings settings_;
  TileTarget target_;
  int side_;  // patches per tile side
  std::vector<CanvasGrid> grids_;
  PixelTable table_, video_table_{};
  std::optional<CanvasVideos> videos_;
  std::optional<UniformSampling> uniform_;  // replaces the videos' own sampling
};

}  // namespace

Result<std::shared_ptr<const Processor>> make_canvas_processor(
    const CanvasSettings& settings, const TileTarget& target,
    const std::optional<CanvasVideos>& videos) {
  const int side = settings.tile / target.patch_size, merge = target.merge_size;
  if (side < 1 || side % merge != 0)
    return refuse_setting(
        "size",
        fmt::format(
            "gives tiles of {} x {} patches, which \"downsample_ratio\" 1/{} does not divide", side,
            side, merge));
  return std::shared_ptr<const Processor>(
      std::make_shared<CanvasProcessor>(settings, target, videos));
}

Result<std::shared_ptr<const Processor>> make_canvas_processor(const ProcessorFiles& files,
                                                               const TileTarget& target) {
  VALORA_TRY(settings, read_canvas_settings(files.image));
  const int64_t merged = settings.tile / target.patch_size / target.merge_size;
  if (files.both.is_object()) {
    VALORA_TRY(said, optional_field<int64_t>(files.both, "image_seq_length"));
    if (said && *said != merged * merged)
      return refuse_setting(
          "image_seq_length",
          fmt::format("is {}, but the model makes {} tokens of a tile", *said, merged * merged));
  }
  const Json& json = files.video.is_null() ? files.image : files.video;
  if (!json.is_object()) return invalid("the video processor's settings are not a JSON object");
  VALORA_TRY(sampling, read_canvas_sampling(json));
  VALORA_TRY(frames, read_canvas_videos(json));
  if (frames.tile != settings.tile)
    return refuse_setting("size", "differs between videos and pictures");
  return make_canvas_processor(settings, target, CanvasVideos{frames.values, sampling});
}

}  // namespace valora::media
