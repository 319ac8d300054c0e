// The image processor of Qwen-VL, the first one: a picture is resized to one square, whatever its
// shape.
#include "media/processor.h"
#include "media/tile_patches.h"

namespace valora::media {
namespace {

class SquareProcessor final : public Processor {
 public:
  explicit SquareProcessor(const SquareTarget& target)
      : target_(target), table_(make_pixel_table({})) {}

  Result<VisualInput> image(const Image& image) const override {
    const int side = target_.image_size / target_.patch_size;
    const TileTarget tile{.patch_size = target_.patch_size, .merge_size = 1};
    VisualInput input = make_tiles(MediaKind::kImage, 1, side, tile);
    input.tokens = target_.tokens;
    append_tile(resize_bicubic(image, target_.image_size, target_.image_size), {}, side, tile,
                table_, input.patches.data());
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
    add_to_digest(digest, PixelValues());
    return digest.finish();
  }

 private:
  static Error no_square_videos() { return invalid("this model takes no videos", "messages"); }

  SquareTarget target_;
  PixelTable table_;
};

}  // namespace

std::shared_ptr<const Processor> make_square_processor(const SquareTarget& target) {
  return std::make_shared<SquareProcessor>(target);
}

}  // namespace valora::media
