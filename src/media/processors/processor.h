// A family's image processor: converts pictures or frames to the flat patches that its vision tower
// reads.
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
#include "base/json/json.h"
#include "media/fetch/fetch.h"
#include "media/image/image.h"
#include "media/processors/canvas_settings.h"
#include "media/processors/processor_settings.h"
#include "media/processors/smart_resize.h"
#include "media/video/frame_sampling.h"
#include "media/video/video.h"

namespace valora::media {

// The values of an input's patches, which it shares with its parts.
class Patches {
 public:
  Patches() = default;
  Patches(std::vector<float> values)
      : storage_(std::make_shared<std::vector<float>>(std::move(values))), values_(*storage_) {}
  // New values, all 0.
  void resize(size_t count) { *this = Patches(std::vector<float>(count)); }
  Patches part(size_t begin, size_t count) const {
    Patches part = *this;
    part.values_ = values_.subspan(begin, count);
    return part;
  }
  size_t size() const { return values_.size(); }
  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }
  const float& operator[](size_t i) const { return values_[i]; }
  const float* begin() const { return data(); }
  const float* end() const { return data() + size(); }

 private:
  std::shared_ptr<std::vector<float>> storage_;
  std::span<float> values_;
};

// How the patch grid of a picture's tiles becomes tokens: cut_rows and cut_columns are removed at
// each end as padding; the remaining patches are resized to rows x columns, one token each.
struct UnpaddedTiles {
  int cut_rows = 0, cut_columns = 0;
  int rows = 0, columns = 0;
};

// One image or video, ready for the vision tower.
struct VisualInput {
  MediaKind kind = MediaKind::kImage;
  // Identifies the pixels: covers the raw bytes, the kind and every processor setting that changes
  // the result. Set by the Loader, which has the bytes.
  Digest digest;
  // Patch grid: temporal, height, width in patches.
  int grid_t = 1, grid_h = 0, grid_w = 0;
  int patch_dim = 0;  // floats per patch
  Patches patches;    // [grid_t * grid_h * grid_w, patch_dim], normalised
  int tokens = 0;     // embedding rows in the language model
  // Each temporal patch or tile becomes tokens / grid_t tokens that depend on it alone. Then, if
  // there are several, `parts` has each as an input of its own, with a digest of its values: media
  // that share some share their embeddings. Cut by the Loader (cut_parts).
  bool separable = false;
  std::vector<std::shared_ptr<const VisualInput>> parts;
  // A tiled picture: grid_t - 1 tiles in reading order, then the whole picture (LLaVA-NeXT: the
  // whole picture first). 0: not tiled.
  int tile_rows = 0, tile_columns = 0;
  UnpaddedTiles unpadded;  // LLaVA-NeXT only
  int token_rows = 0;      // rows of tokens that the prompt separates (Pixtral); 0: not separated
  // Size to which the picture was resized, if its patches are that picture alone; else 0.
  int seen_width = 0, seen_height = 0;
  // Size of the picture as sent, with its orientation applied; set by the Loader. 0 for videos.
  int width = 0, height = 0;
  int64_t patch_count() const { return int64_t{grid_t} * grid_h * grid_w; }
  double seconds_per_grid = 0;  // videos only: time between temporal positions (Qwen2.5-VL)
  // Videos of families with times in their prompts: Processor::patch_times(). Set by the Loader.
  std::vector<double> patch_times;
  double seconds = 0;  // duration of a video file; 0: unknown. Set by the Loader.
};

// Values that replace a processor's settings for one image or video.
struct ProcessorOverrides {
  MediaKind kind = MediaKind::kImage;
  std::optional<int64_t> min_pixels, max_pixels;  // per picture or frame
  std::optional<int64_t> total_pixels;            // over all frames of a video
  std::optional<int64_t> resized_height, resized_width;
  bool whole_sides = false;  // round sizes as qwen_vl_utils does (smart_resize)
  // How frames of a video file are chosen. monostate: by the processor's own rule. Values absent
  // from a SpanChoice are the processor's.
  struct SpanChoice {
    std::optional<int64_t> nframes, min_frames, max_frames;
    std::optional<double> fps, start, end;
    bool operator==(const SpanChoice&) const = default;
  };
  std::variant<std::monostate, SpanChoice, UniformSampling> frames;
  std::optional<double> fps;         // with monostate: the processor's sampling rate
  std::optional<double> frame_rate;  // rate of the kept frames, or of a list of frames
  bool operator==(const ProcessorOverrides&) const = default;
};

class Processor {
 public:
  virtual ~Processor() = default;
  // The same processor with other settings, within its own limits. kInvalidArgument if they exceed
  // the limits or it has no such settings; the message is a clause without the request's field.
  virtual Result<std::shared_ptr<const Processor>> with(const ProcessorOverrides&) const {
    return invalid("this model resizes all pictures to one size and accepts no media settings");
  }
  // The processor for prompts with several pictures; null: the same as for one picture.
  virtual std::shared_ptr<const Processor> of_several() const { return nullptr; }
  virtual Result<VisualInput> image(const Image& image) const = 0;
  // Frames of equal size; padded to the family's temporal patch. sampled_fps: frames per second of
  // video; 0 if unknown (a list of frames): the settings' frame rate, or else the family's default.
  // If a stop is requested, ends at the next frame: kCancelled.
  virtual Result<VisualInput> video(const std::vector<Image>& frames, double sampled_fps,
                                    const std::stop_token& stop = {}) const = 0;
  // The `tokens` of image() and video(), computed from the size alone.
  virtual Result<int64_t> image_tokens(int width, int height) const = 0;
  virtual Result<int64_t> video_tokens(int width, int height, int64_t frames) const = 0;
  virtual FrameSampler frame_sampler() const = 0;
  // The rate, in frames per second of video, if the sampler keeps `kept` frames.
  virtual double sampled_fps(const VideoInfo& video, int64_t kept) const {
    return video.fps * double(kept) / double(video.frames);
  }
  // The times, in seconds, that a prompt shows before each temporal patch of a video: the mean of
  // its first and last frame's times. kept: indices of the kept frames. video.fps 0: rate unknown.
  // Empty if the family's prompts have no times.
  virtual std::vector<double> patch_times(const VideoInfo& /*video*/,
                                          std::span<const int64_t> /*kept*/) const {
    return {};
  }
  // Goes into digests: covers every setting that changes pixels or the grid.
  virtual Digest settings_digest() const = 0;
};

// A model folder's processor files; null for a missing one.
struct ProcessorFiles {
  Json image, video;  // preprocessor_config.json, video_preprocessor_config.json
  Json both;          // processor_config.json
};

// The square picture that a CLIP tower reads.
struct ClipTarget {
  int image_size = 336;  // pixels per side
  int patch_size = 14;
  bool class_token = false;  // the class token is also passed to the language model
};

// For LLaVA-1.5's preprocessor_config.json (bit for bit transformers' CLIPImageProcessor with PIL):
// resizes the shorter edge, crops the centre, rescales, normalises. Rows are patches in reading
// order, channel by channel. Refuses aspect ratios over 200. kUnprocessable if the settings do not
// yield the target.
Result<std::shared_ptr<const Processor>> make_clip_processor(const Json& image_json,
                                                             const ClipTarget& target);

// For the preprocessor_config.json of Qwen2-VL and Qwen2.5-VL (Qwen2VLImageProcessor): smart_resize
// with min/max_pixels or size.{shortest_edge,longest_edge}, rescale, normalise, patchify
// (temporal_patch_size, patch_size, merge_size). Rows are ordered by merge block as in the
// reference. video_json: video_preprocessor_config.json, or null if the folder has none; then
// image_json also applies to videos, as in the reference. Video frames are resized like images,
// with PIL's bicubic; the reference uses torchvision, whose antialiased bicubic rounds differently.
// kUnprocessable names a setting that is unknown, unsupported, or yields patches the vision tower
// cannot read.
Result<std::shared_ptr<const Processor>> make_qwen2_vl_processor(const Json& image_json,
                                                                 const Json& video_json,
                                                                 const PatchLayout& tower);

// The same for Qwen3-VL (Qwen3VLVideoProcessor): the pixel bounds apply to a whole video, frames
// are spread from the first to the last, and each temporal patch has a time.
Result<std::shared_ptr<const Processor>> make_qwen3_vl_processor(const Json& image_json,
                                                                 const Json& video_json,
                                                                 const PatchLayout& tower);

// The patches in a tile.
struct TileTarget {
  int patch_size = 16;
  int merge_size = 4;  // a visual token stands for merge_size² patches
};

// For Idefics3 and SmolVLM (bit for bit transformers' processors with PIL): resizes to the longest
// edge and to multiples of the tile, cuts into tiles, and appends the whole picture at a tile's
// size; without do_image_splitting, only the whole picture. Rows are ordered by tile and merge
// block. A video frame is a whole picture. kUnprocessable for settings that are unknown or that the
// tower cannot read. videos: false ignores the video settings and refuses videos.
Result<std::shared_ptr<const Processor>> make_tile_processor(const ProcessorFiles& files,
                                                             const TileTarget& target,
                                                             bool videos = false);

// For InternVL (bit for bit transformers' GotOcr2ImageProcessor with PIL): resizes the picture to
// the grid of tiles with the closest aspect ratio and cuts it; if there are several tiles, the
// whole picture follows. Rows are ordered by tile and merge block. A video frame is one tile.
// kUnprocessable for tiles that the target cannot read. videos: absent to refuse videos.
Result<std::shared_ptr<const Processor>> make_canvas_processor(
    const CanvasSettings& settings, const TileTarget& target,
    const std::optional<CanvasVideos>& videos);
// From the model folder of InternVLForConditionalGeneration.
Result<std::shared_ptr<const Processor>> make_canvas_processor(const ProcessorFiles& files,
                                                               const TileTarget& target);

// The tiles that LLaVA-NeXT and LLaVA-OneVision read.
struct AnyresTarget {
  int image_size = 336;  // pixels per side of a tile
  int patch_size = 14;
  // pinpoints: config.json's. default_pinpoints: used if the processor's file has none. Sides are
  // multiples of the tile.
  std::vector<PixelSize> pinpoints, default_pinpoints;
  // LLaVA-OneVision: a picture with more patches than this many tiles is resized to fewer tokens,
  // prompts with several pictures use squares, and videos are supported. 0: LLaVA-NeXT.
  int most_tiles = 0;
};

// Bit for bit transformers' LlavaNextImageProcessor and LlavaOnevisionImageProcessor with PIL: the
// whole picture as a square, then the picture resized to the best resolution, padded and cut into
// tiles. Rows are patches in reading order, tile by tile. A video frame is a square. kUnprocessable
// for settings that are unknown or differ from the target's.
Result<std::shared_ptr<const Processor>> make_anyres_processor(const ProcessorFiles& files,
                                                               const AnyresTarget& target);

// The blocks of patches that Pixtral and Mistral 3 read.
struct PixtralTarget {
  int patch_size = 16;
  int merge_size = 1;     // a visual token stands for merge_size² patches
  int most_patches = 64;  // per side; the vision tower has positions for no more
};

// Bit for bit transformers' PixtralImageProcessor with PIL: shrinks a picture over the largest size
// to fit, and rounds its sides to whole blocks. Rows are patches, block by block. kUnprocessable
// for settings that are unknown or differ from the target's.
Result<std::shared_ptr<const Processor>> make_pixtral_processor(const ProcessorFiles& files,
                                                                const PixtralTarget& target);

// The square picture that the towers of Gemma 3 and the first Qwen-VL read.
struct SquareTarget {
  int image_size = 448;  // pixels per side
  int patch_size = 14;
  int tokens = 256;  // per picture
};

// Bit for bit transformers' Gemma3ImageProcessor with PIL, without pan and scan: resizes the
// picture to the square. Rows are patches in reading order. kUnprocessable for settings that are
// unknown or differ from the target's.
Result<std::shared_ptr<const Processor>> make_gemma3_processor(const ProcessorFiles& files,
                                                               const SquareTarget& target);

// Bit for bit the first Qwen-VL's transform with PIL: resizes the picture to the square, ignoring
// its aspect ratio, and normalises with CLIP's values. Rows are patches in reading order.
std::shared_ptr<const Processor> make_square_processor(const SquareTarget& target);

// The same with another filter and other values. Videos are refused.
std::shared_ptr<const Processor> make_square_processor(const SquareTarget& target, Resample filter,
                                                       const PixelValues& values);

// A request's choice of video frames, for model families without other media settings. The
// requested rule; absent: the family's own. kInvalidArgument if the request has other settings.
Result<std::optional<UniformSampling>> frame_choice(const ProcessorOverrides& asked);

}  // namespace valora::media
