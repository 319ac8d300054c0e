// A family's image processor: pictures or frames to the flat patches that its vision tower reads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "base/digest.h"
#include "base/json.h"
#include "media/canvas_settings.h"
#include "media/fetch.h"
#include "media/frame_sampling.h"
#include "media/image.h"
#include "media/processor_settings.h"
#include "media/smart_resize.h"
#include "media/video.h"

namespace valora::media {

// Of the grid of patches of a picture's tiles: so many at each end of rows and columns are padding,
// and the others are resized to rows x columns, each of which becomes a token.
struct UnpaddedTiles {
  int cut_rows = 0, cut_columns = 0;
  int rows = 0, columns = 0;
};

// One image or video, ready for the vision tower.
struct VisualInput {
  MediaKind kind = MediaKind::kImage;
  // Identity of the pixels: covers raw bytes, kind and every processor setting that changes the
  // result. Set by the Loader, which has the bytes.
  Digest digest;
  // Patch grid: temporal, height, width in patches.
  int grid_t = 1, grid_h = 0, grid_w = 0;
  int patch_dim = 0;           // floats per patch
  std::vector<float> patches;  // [grid_t * grid_h * grid_w, patch_dim], normalised
  int tokens = 0;              // rows of embeddings in the language model
  // A picture cut into tiles: grid_t - 1 of them, row by row, and then the whole picture; of
  // LLaVA-NeXT, the whole picture first. 0: it is not.
  int tile_rows = 0, tile_columns = 0;
  UnpaddedTiles unpadded;  // of LLaVA-NeXT's tiles
  int token_rows = 0;      // rows of tokens that stand apart in the prompt (Pixtral); 0: none do
  // Size of the picture as sent, after its orientation was applied; set by the Loader. Videos: 0.
  int width = 0, height = 0;
  int64_t patch_count() const { return int64_t{grid_t} * grid_h * grid_w; }
  double seconds_per_grid = 0;  // videos only: time between temporal positions (Qwen2.5-VL)
  // Videos of families whose prompts have times: Processor::patch_times(); set by the Loader.
  std::vector<double> patch_times;
  double seconds = 0;  // of a video file; 0: unknown. Set by the Loader.
};

// Values in place of a processor's settings, for one image or video.
struct ProcessorOverrides {
  MediaKind kind = MediaKind::kImage;
  std::optional<int64_t> min_pixels, max_pixels;  // of each picture or frame
  std::optional<int64_t> total_pixels;            // of all frames of a video
  std::optional<int64_t> resized_height, resized_width;
  bool whole_sides = false;  // sizes are rounded as qwen_vl_utils does (smart_resize)
  // How frames of a video file are chosen, for a video. monostate: as the processor does.
  // Absent values of SpanChoice are the processor's.
  struct SpanChoice {
    std::optional<int64_t> nframes, min_frames, max_frames;
    std::optional<double> fps, start, end;
    bool operator==(const SpanChoice&) const = default;
  };
  std::variant<std::monostate, SpanChoice, UniformSampling> frames;
  std::optional<double> fps;         // monostate: the rate at which the processor samples
  std::optional<double> frame_rate;  // of the frames that are kept, or of a list of frames
  bool operator==(const ProcessorOverrides&) const = default;
};

class Processor {
 public:
  virtual ~Processor() = default;
  // The same processor with other settings, within the limits of its own. kInvalidArgument: they
  // are beyond them, or it has no such settings; a clause without the request's field.
  virtual Result<std::shared_ptr<const Processor>> with(const ProcessorOverrides&) const {
    return invalid("the model prepares all pictures in one size and takes no settings of them");
  }
  // What prepares the pictures of a prompt with several; null: the same as the picture of a prompt
  // with one.
  virtual std::shared_ptr<const Processor> of_several() const { return nullptr; }
  virtual Result<VisualInput> image(const Image& image) const = 0;
  // Frames of equal size; padded to the family's temporal patch. sampled_fps: frames given per
  // second of the video. 0 if unknown (a list of frames): the settings' frame rate, else the
  // family's default. If a stop is requested, the work ends at the next frame: kCancelled.
  virtual Result<VisualInput> video(const std::vector<Image>& frames, double sampled_fps,
                                    const std::stop_token& stop = {}) const = 0;
  // VisualInput::tokens of image() and video(), from the size alone.
  virtual Result<int64_t> image_tokens(int width, int height) const = 0;
  virtual Result<int64_t> video_tokens(int width, int height, int64_t frames) const = 0;
  virtual FrameSampler frame_sampler() const = 0;
  // Frames per second of the video's time if the sampler keeps `kept` frames.
  virtual double sampled_fps(const VideoInfo& video, int64_t kept) const {
    return video.fps * double(kept) / double(video.frames);
  }
  // The time that a prompt has before each temporal patch of a video, in seconds: the mean of its
  // first and its last frame's. kept: the indices of the frames that are kept, of a video with
  // video.fps frames per second; 0: unknown. Empty if the family writes none.
  virtual std::vector<double> patch_times(const VideoInfo& /*video*/,
                                          std::span<const int64_t> /*kept*/) const {
    return {};
  }
  // Part of digests: covers every setting that changes pixels or grid.
  virtual Digest settings_digest() const = 0;
};

// What a model folder says of its processors; null where it says nothing.
struct ProcessorFiles {
  Json image, video;  // preprocessor_config.json, video_preprocessor_config.json
  Json both;          // processor_config.json
};

// The square that a CLIP tower reads.
struct ClipTarget {
  int image_size = 336;  // pixels per side
  int patch_size = 14;
  bool class_token = false;  // the class token is also passed to the language model
};

// From preprocessor_config.json of LLaVA-1.5 (equal to transformers' CLIPImageProcessor with PIL,
// bit for bit): resize the shorter edge, crop the centre, rescale, normalise. Rows are patches in
// reading order, channel by channel. Aspect ratios over 200 are refused. Settings that do not give
// the target: kUnprocessable.
Result<std::shared_ptr<const Processor>> make_clip_processor(const Json& image_json,
                                                             const ClipTarget& target);

// From preprocessor_config.json of Qwen2-VL and Qwen2.5-VL (Qwen2VLImageProcessor): smart_resize
// with min/max_pixels or size.{shortest_edge,longest_edge}, rescale, normalise, patchify
// (temporal_patch_size, patch_size, merge_size). Rows are ordered by merge block as in the
// reference. video_json: video_preprocessor_config.json if the folder has one, otherwise null; then
// image_json also applies to videos, as in the reference. Frames are resized by the PIL-equal
// bicubic of images; the reference resizes videos with torchvision, whose antialiased bicubic
// rounds differently. A setting that is unknown or unsupported, or patches other than the vision
// tower's: kUnprocessable naming it.
Result<std::shared_ptr<const Processor>> make_qwen2_vl_processor(const Json& image_json,
                                                                 const Json& video_json,
                                                                 const PatchLayout& tower);

// The same for Qwen3-VL (Qwen3VLVideoProcessor): the pixels of a video are bounded together, its
// frames are spread from the first to the last, and each temporal patch has a time.
Result<std::shared_ptr<const Processor>> make_qwen3_vl_processor(const Json& image_json,
                                                                 const Json& video_json,
                                                                 const PatchLayout& tower);

// The patches of a tile.
struct TileTarget {
  int patch_size = 16;
  int merge_size = 4;  // a visual token stands for merge_size² patches
};

// From the files of Idefics3 and SmolVLM (equal to transformers' processors with PIL, bit for bit):
// resize to the longest edge and to multiples of the tile, cut into tiles and add the whole picture
// in a tile's size; or, without do_image_splitting, the whole picture alone. Rows are ordered by
// tile and merge block. A frame of a video is a whole picture. Settings that are unknown, or that
// the tower cannot read: kUnprocessable. videos: whether the settings of videos matter; else videos
// are refused.
Result<std::shared_ptr<const Processor>> make_tile_processor(const ProcessorFiles& files,
                                                             const TileTarget& target,
                                                             bool videos = false);

// InternVL's (equal to transformers' GotOcr2ImageProcessor with PIL, bit for bit): the picture is
// resized to the grid of tiles with the closest aspect ratio and cut; behind several tiles comes
// the whole picture. Rows are ordered by tile and merge block. A frame of a video is one tile.
// Tiles that the target cannot read: kUnprocessable. videos: absent if they are refused.
Result<std::shared_ptr<const Processor>> make_canvas_processor(
    const CanvasSettings& settings, const TileTarget& target,
    const std::optional<CanvasVideos>& videos);
// From the files of InternVLForConditionalGeneration.
Result<std::shared_ptr<const Processor>> make_canvas_processor(const ProcessorFiles& files,
                                                               const TileTarget& target);

// The tiles that LLaVA-NeXT and LLaVA-OneVision read.
struct AnyresTarget {
  int image_size = 336;  // pixels per side of a tile
  int patch_size = 14;
  // config.json's, and those of a processor's file that has none. Multiples of the tile.
  std::vector<PixelSize> pinpoints, default_pinpoints;
  // LLaVA-OneVision: the patches of more tiles than these are resized, the pictures of a prompt
  // with several are squares, and videos are taken. 0: LLaVA-NeXT.
  int most_tiles = 0;
};

// Equal to transformers' LlavaNextImageProcessor and LlavaOnevisionImageProcessor with PIL, bit for
// bit: the whole picture as a square; and the picture resized into the best of the resolutions,
// padded and cut into tiles. Rows are patches in reading order, tile by tile. A frame of a video is
// a square. kUnprocessable: settings that are unknown, or other ones than the target's.
Result<std::shared_ptr<const Processor>> make_anyres_processor(const ProcessorFiles& files,
                                                               const AnyresTarget& target);

// The blocks of patches that Pixtral and Mistral 3 read.
struct PixtralTarget {
  int patch_size = 16;
  int merge_size = 1;     // a visual token stands for merge_size² patches
  int most_patches = 64;  // on a side, for which the vision tower has positions
};

// Equal to transformers' PixtralImageProcessor with PIL, bit for bit: a picture over the largest
// size shrinks to it, and its sides become whole blocks. Rows are patches by block.
// kUnprocessable: settings that are unknown, or other ones than the target's.
Result<std::shared_ptr<const Processor>> make_pixtral_processor(const ProcessorFiles& files,
                                                                const PixtralTarget& target);

// The square that the towers of Gemma 3 and of the first Qwen-VL read.
struct SquareTarget {
  int image_size = 448;  // pixels per side
  int patch_size = 14;
  int tokens = 256;  // of each picture
};

// Equal to transformers' Gemma3ImageProcessor with PIL, bit for bit, without pan and scan: the
// picture is resized to the square. Rows are patches in reading order. kUnprocessable: settings
// that are unknown, or other ones than the target's.
Result<std::shared_ptr<const Processor>> make_gemma3_processor(const ProcessorFiles& files,
                                                               const SquareTarget& target);

// Equal to the transform of the first Qwen-VL with PIL, bit for bit: a picture is resized to the
// square, without regard to its shape, and normalised with CLIP's values. Rows are patches in
// reading order.
std::shared_ptr<const Processor> make_square_processor(const SquareTarget& target);

}  // namespace valora::media
