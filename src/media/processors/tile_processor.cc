// The image processor of Idefics3 and SmolVLM: a picture becomes square tiles of one size, followed
// by the whole picture at that size.
#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "media/processors/processor.h"
#include "media/processors/tile_patches.h"
#include "media/processors/tile_settings.h"
#include "media/video/stop.h"

namespace valora::media {
namespace {

constexpr int kMaxTiledSide = 4096;  // limit for a picture resized to its longest edge
constexpr double kListRate = 24;     // frames per second of a frame list, as in the reference

// The side that preserves the aspect ratio, given the other side; in the reference's arithmetic.
int side_at(int other, double ratio) { return std::max(static_cast<int>(other / ratio), 1); }

int next_even(int side) { return side + side % 2; }

// Resizes the longer side to `edge` and rounds the other up to an even number; then shrinks a
// picture over the limit.
PixelSize resized_to_edge(PixelSize size, int edge) {
  double ratio = double(size.width) / size.height;
  if (size.width >= size.height)
    size = {edge, next_even(static_cast<int>(edge / ratio))};
  else
    size = {next_even(static_cast<int>(edge * ratio)), edge};
  size = {std::max(size.width, 1), std::max(size.height, 1)};
  ratio = double(size.width) / size.height;
  if (size.width >= size.height && size.width > kMaxTiledSide)
    return {kMaxTiledSide, side_at(kMaxTiledSide, ratio)};
  if (size.height > size.width && size.height > kMaxTiledSide)
    return {std::max(static_cast<int>(kMaxTiledSide * ratio), 1), kMaxTiledSide};
  return size;
}

class TileProcessor final : public Processor {
 public:
  struct Videos {
    TileSettings settings;
    TileSampling sampling;
  };
  TileProcessor(const TileSettings& settings, const TileTarget& target,
                const std::optional<Videos>& videos)
      : settings_(settings),
        target_(target),
        side_(settings.tile / target.patch_size),
        table_(make_pixel_table(settings.values)),
        videos_(videos) {
    if (videos_) video_table_ = make_pixel_table(videos_->settings.values);
  }

  Result<VisualInput> image(const Image& image) const override {
    const PixelSize size = first_size({image.width, image.height}, settings_);
    const Grid tiles = cut(size);
    Image whole = resize_image(image, size.width, size.height, settings_.filter);
    VisualInput input =
        make_tiles(MediaKind::kImage, tiles.rows * tiles.columns + 1, side_, target_);
    input.tile_rows = tiles.rows;
    input.tile_columns = tiles.columns;
    input.separable = true;
    float* out = input.patches.data();
    const int tile = settings_.tile;
    if (settings_.splits)
      whole = resize_image(whole, std::max(tiles.columns, 1) * tile, std::max(tiles.rows, 1) * tile,
                           settings_.filter);
    for (int row = 0; row < tiles.rows; ++row)
      for (int column = 0; column < tiles.columns; ++column)
        out = append_tile(whole, {column * tile, row * tile}, side_, target_, table_, out);
    append_tile(resize_image(whole, tile, tile, settings_.filter), {}, side_, target_, table_, out);
    return input;
  }

  Result<VisualInput> video(const std::vector<Image>& frames, double,
                            const std::stop_token& stop) const override {
    if (!videos_) return no_tiled_videos();
    if (frames.empty()) return invalid("the video has no frames");
    const TileSettings& settings = videos_->settings;
    VisualInput input =
        make_tiles(MediaKind::kVideo, static_cast<int>(frames.size()), side_, target_);
    input.separable = true;
    float* out = input.patches.data();
    for (const Image& frame : frames) {
      VALORA_CHECK(check_stop(stop));
      const PixelSize size = first_size({frame.width, frame.height}, settings);
      const Image resized = resize_image(frame, size.width, size.height, settings.filter);
      out = append_tile(resize_image(resized, settings.tile, settings.tile, settings.filter), {},
                        side_, target_, video_table_, out);
    }
    return input;
  }
  Result<int64_t> image_tokens(int width, int height) const override {
    if (width < 1 || height < 1) return invalid("the picture has no pixels");
    const Grid tiles = cut(first_size({width, height}, settings_));
    return (int64_t{tiles.rows} * tiles.columns + 1) * tokens_per_tile();
  }
  Result<int64_t> video_tokens(int, int, int64_t frames) const override {
    if (!videos_) return no_tiled_videos();
    return frames * tokens_per_tile();
  }
  FrameSampler frame_sampler() const override {
    if (!videos_)
      return [](const VideoInfo&) -> Result<std::vector<int64_t>> { return no_tiled_videos(); };
    return [sampling = videos_->sampling](const VideoInfo& video) {
      return sample_tiled(video, sampling);
    };
  }
  std::vector<double> patch_times(const VideoInfo& video,
                                  std::span<const int64_t> kept) const override {
    const double fps = video.fps > 0 ? video.fps : kListRate;
    std::vector<double> times;
    for (const int64_t index : kept) times.push_back(double(index) / fps);
    return times;
  }

  Digest settings_digest() const override {
    DigestBuilder digest;
    digest.add(std::string_view("tiles")).add(target_.patch_size).add(target_.merge_size);
    add_settings(digest, settings_);
    if (videos_) {
      add_settings(digest, videos_->settings);
      digest.add(videos_->sampling.most).add(videos_->sampling.fps);
    }
    return digest.finish();
  }

 private:
  struct Grid {
    int rows = 0, columns = 0;  // both 0: not tiled
  };

  static void add_settings(DigestBuilder& digest, const TileSettings& settings) {
    digest.add(settings.do_resize).add(settings.longest_edge);
    digest.add(settings.fixed.width).add(settings.fixed.height).add(settings.splits);
    digest.add(settings.tile).add(static_cast<int>(settings.filter));
    add_to_digest(digest, settings.values);
  }

  static Error no_tiled_videos() {
    return invalid("this model does not support videos", "messages");
  }

  int tokens_per_tile() const {
    const int tokens = side_ / target_.merge_size;
    return tokens * tokens;
  }

  static PixelSize first_size(PixelSize size, const TileSettings& settings) {
    if (!settings.do_resize) return size;
    return settings.longest_edge > 0 ? resized_to_edge(size, settings.longest_edge)
                                     : settings.fixed;
  }

  // Rounds the longer side to a multiple of the tile; the other side follows and is rounded
  // likewise.
  Grid cut(PixelSize size) const {
    if (!settings_.splits) return {};
    const int tile = settings_.tile;
    const auto tiles = [&](int side) { return (side + tile - 1) / tile; };
    const double ratio = double(size.width) / size.height;
    Grid grid;
    if (size.width >= size.height) {
      grid.columns = tiles(size.width);
      grid.rows = tiles(side_at(grid.columns * tile, ratio));
    } else {
      grid.rows = tiles(size.height);
      grid.columns = tiles(std::max(static_cast<int>(grid.rows * tile * ratio), 1));
    }
    return grid.rows > 1 || grid.columns > 1 ? grid : Grid{};
  }

  TileSettings settings_;
  TileTarget target_;
  int side_;  // patches per tile side; pixels beyond whole patches are not read
  PixelTable table_, video_table_;
  std::optional<Videos> videos_;
};

}  // namespace

Result<std::shared_ptr<const Processor>> make_tile_processor(const ProcessorFiles& files,
                                                             const TileTarget& target,
                                                             bool videos) {
  VALORA_TRY(settings, read_tile_settings(files.image));
  const int side = settings.tile / target.patch_size, merge = target.merge_size;
  if (side < 1 || side % merge != 0)
    return refuse_setting(
        "max_image_size",
        fmt::format("gives tiles of {} x {} patches, which \"scale_factor\" {} does not divide",
                    side, side, merge));
  const int64_t tokens = int64_t{side / merge} * (side / merge);
  if (files.both.is_object()) {
    VALORA_TRY(said, optional_field<int64_t>(files.both, "image_seq_len"));
    if (said && *said != tokens)
      return refuse_setting(
          "image_seq_len",
          fmt::format("is {}, but the model makes {} tokens of a tile", *said, tokens));
  }
  std::optional<TileProcessor::Videos> of_videos;
  if (videos) {
    const Json& json = files.video.is_null() ? files.image : files.video;
    if (!json.is_object()) return invalid("the video processor's settings are not a JSON object");
    VALORA_TRY(sampling, read_tile_sampling(json));
    VALORA_TRY(frames, read_tiled_videos(json));
    if (frames.tile != settings.tile)
      return refuse_setting("max_image_size", "differs between videos and pictures");
    of_videos = {frames, sampling};
  }
  return std::shared_ptr<const Processor>(
      std::make_shared<TileProcessor>(settings, target, of_videos));
}

}  // namespace valora::media
