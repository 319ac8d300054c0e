#include "media/processors/processor.h"

#include "media/processors/tile_patches.h"

namespace valora::media {
namespace {

class SquareProcessor final : public Processor {
 public:
  SquareProcessor(const SquareTarget& target, Resample filter, const PixelValues& values)
      : target_(target), filter_(filter), values_(values), table_(make_pixel_table(values)) {}

  Result<VisualInput> image(const Image& image) const override {
    const int side = target_.image_size / target_.patch_size;
    const TileTarget tile{.patch_size = target_.patch_size, .merge_size = 1};
    VisualInput input = make_tiles(MediaKind::kImage, 1, side, tile);
    input.tokens = target_.tokens;
    append_tile(resize_image(image, target_.image_size, target_.image_size, filter_), {}, side,
                tile, table_, input.patches.data());
    return input;
  }
  Result<int64_t> image_tokens(int width, int height) const override {
    if (width < 1 || height < 1) return invalid("the picture has no pixels");
    return target_.tokens;
  }
  Result<VisualInput> video(const std::vector<Image>&, double,
                            const std::stop_token&) const override {
    return no_square_videos();
  }
  Result<int64_t> video_tokens(int, int, int64_t) const override { return no_square_videos(); }
  FrameSampler frame_sampler() const override {
    return [](const VideoInfo&) -> Result<std::vector<int64_t>> { return no_square_videos(); };
  }
  Digest settings_digest() const override {
    DigestBuilder digest;
    digest.add(std::string_view("square")).add(target_.image_size).add(target_.patch_size);
    digest.add(target_.tokens).add(static_cast<int>(filter_));
    add_to_digest(digest, values_);
    return digest.finish();
  }

 private:
  static Error no_square_videos() {
    return invalid("this model does not support videos", "messages");
  }

  SquareTarget target_;
  Resample filter_;
  PixelValues values_;
  PixelTable table_;
};

}  // namespace

std::shared_ptr<const Processor> make_square_processor(const SquareTarget& target, Resample filter,
                                                       const PixelValues& values) {
  return std::make_shared<SquareProcessor>(target, filter, values);
}

std::shared_ptr<const Processor> make_square_processor(const SquareTarget& target) {
  return make_square_processor(target, Resample::kBicubic, {});
}

}  // namespace valora::media
