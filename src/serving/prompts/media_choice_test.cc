#include "serving/prompts/media_choice.h"

#include <gtest/gtest.h>

namespace valora::serving {
namespace {

using Overrides = media::ProcessorOverrides;
constexpr auto kImage = media::MediaKind::kImage, kVideo = media::MediaKind::kVideo;
constexpr bool kFile = false, kList = true;

Overrides chosen(const MediaSettings& part, const MediaSettings& request, media::MediaKind kind,
                 bool list = kFile) {
  const auto overrides = overrides_of(part, request, kind, list);
  EXPECT_TRUE(overrides.ok()) << overrides.error().message;
  return overrides.ok() ? *overrides : Overrides{};
}

TEST(MediaChoice, PartSizesOverrideRequest) {
  const MediaSettings request{.min_pixels = 4, .max_pixels = 64, .fps = 2.0};
  EXPECT_EQ(chosen({}, request, kImage),
            (Overrides{.kind = kImage, .min_pixels = 4, .max_pixels = 64}));
  EXPECT_EQ(chosen({.max_pixels = 32}, request, kImage),
            (Overrides{.kind = kImage, .min_pixels = 4, .max_pixels = 32, .whole_sides = true}));
}

TEST(MediaChoice, OneOfThreeSettingsSelectsFrames) {
  EXPECT_EQ(chosen({}, {.fps = 2.0}, kVideo), (Overrides{.kind = kVideo, .fps = 2.0}));
  EXPECT_EQ(chosen({.frames = PartFrames{.fps = {}, .nframes = 4}}, {.fps = 2.0}, kVideo),
            (Overrides{.kind = kVideo, .frames = Overrides::SpanChoice{.nframes = 4}}));
  const auto loader = [](LoaderFrames frames) { return MediaSettings{.loader = frames}; };
  const auto uniform = [](media::UniformSampling frames) {
    return Overrides{.kind = kVideo, .frames = frames};
  };
  EXPECT_EQ(chosen({}, loader({4, 1.0}), kVideo), uniform({4, 1.0}));
  EXPECT_EQ(chosen({}, loader({{}, 1.0}), kVideo), uniform({32, 1.0})) << "vLLM's own number";
  EXPECT_EQ(chosen({}, loader({-1, -1.0}), kVideo), uniform({}));
}

TEST(MediaChoice, FpsIsFrameRateOfUnsampledFrames) {
  const MediaSettings client{.fps = 4.0, .do_sample_frames = false};
  EXPECT_EQ(chosen({}, client, kVideo, kList), (Overrides{.kind = kVideo, .frame_rate = 4.0}));
  EXPECT_EQ(chosen({.sample_fps = 3.0}, client, kVideo, kList).frame_rate, 3.0);
  EXPECT_EQ(chosen({.fps = 2.5}, client, kVideo, kList).frame_rate, 2.5);
  MediaSettings loaded = client;
  loaded.loader = LoaderFrames{4, {}};
  EXPECT_EQ(chosen({}, loaded, kVideo).frame_rate, 4.0);
  loaded = {.fps = 1.0, .do_sample_frames = true, .loader = LoaderFrames{-1, {}}};
  EXPECT_EQ(chosen({}, loaded, kVideo), (Overrides{.kind = kVideo, .fps = 1.0}));
}

TEST(MediaChoice, ConflictingSettingsAreRefused) {
  const LoaderFrames four{4, {}};
  const MediaSettings nframes{.frames = PartFrames{.fps = {}, .nframes = 4}};
  EXPECT_FALSE(overrides_of({}, {.fps = 1.0, .loader = four}, kVideo, kFile).ok());
  EXPECT_FALSE(overrides_of({}, {.do_sample_frames = true, .loader = four}, kVideo, kFile).ok());
  EXPECT_FALSE(overrides_of({}, {.do_sample_frames = false}, kVideo, kFile).ok());
  EXPECT_TRUE(overrides_of(nframes, {.do_sample_frames = false}, kVideo, kFile).ok());
  EXPECT_FALSE(overrides_of(nframes, {}, kVideo, kList).ok());
  EXPECT_FALSE(overrides_of({.sample_fps = 2.0}, {}, kVideo, kFile).ok());
  EXPECT_FALSE(overrides_of(nframes, {}, kImage, kFile).ok());
  EXPECT_FALSE(overrides_of({.total_pixels = 4}, {}, kImage, kFile).ok());
}

}  // namespace
}  // namespace valora::serving
