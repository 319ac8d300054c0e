#include "api/media_settings.h"

#include <gtest/gtest.h>

#include "api/media_fields.h"

namespace valora {
namespace {

TEST(MediaSettings, RequestOverridesServerKeyByKey) {
  const MediaSettings defaults{.min_pixels = 4, .max_pixels = 64, .fps = 1.0};
  EXPECT_EQ(with_defaults({}, defaults), defaults);
  EXPECT_EQ(with_defaults({.max_pixels = 32}, defaults),
            (MediaSettings{.min_pixels = 4, .max_pixels = 32, .fps = 1.0}));
  EXPECT_EQ(with_defaults({.fps = 2.0}, defaults).fps, 2.0);
}

TEST(MediaSettings, RequestThatChoosesFramesIgnoresOtherFrameDefaults) {
  const MediaSettings rate{.fps = 1.0}, loader{.loader = LoaderFrames{.num_frames = 16, .fps = 2}};
  const LoaderFrames eight{.num_frames = 8, .fps = {}};
  EXPECT_EQ(with_defaults({.loader = eight}, rate), MediaSettings{.loader = eight});
  EXPECT_EQ(with_defaults({.loader = eight}, loader).loader, eight) << "as vLLM drops its fps";
  EXPECT_EQ(with_defaults({.fps = 2.0}, loader), MediaSettings{.fps = 2.0});
  EXPECT_EQ(with_defaults({.do_sample_frames = true}, loader).loader, std::nullopt);
  EXPECT_EQ(with_defaults({.do_sample_frames = true}, rate).fps, 1.0);
  const MediaSettings given = with_defaults({.fps = 4.0, .do_sample_frames = false}, loader);
  EXPECT_EQ(given.loader, loader.loader) << "the rate is that of the loader's frames";
}

TEST(MediaSettings, PartOverridesRequest) {
  const MediaSettings request{.max_pixels = 64, .fps = 1.0, .do_sample_frames = false};
  EXPECT_EQ(in_request({}, request), request);
  const MediaSettings part{.min_pixels = 4, .frames = PartFrames{.fps = {}, .nframes = 4}};
  const MediaSettings both = in_request(part, request);
  EXPECT_EQ(both.max_pixels, 64);
  EXPECT_EQ(both.fps, std::nullopt);
  EXPECT_EQ(both.do_sample_frames, std::nullopt);
  EXPECT_EQ(both.frames, part.frames);
}

struct Defaults {
  std::string processor, io;
};

TEST(MediaDefaults, AcceptVllmObjects) {
  const auto read = [](const Defaults& texts) {
    return read_media_defaults(texts.processor, texts.io);
  };
  EXPECT_EQ(*read({}), MediaSettings{});
  EXPECT_EQ(*read({R"({"max_pixels":64,"fps":[2],"min_pixels":null})", "{}"}),
            (MediaSettings{.max_pixels = 64, .fps = 2.0}));
  EXPECT_EQ(read({"", R"({"video":{"num_frames":-1},"image":{}})"})->loader,
            (LoaderFrames{.num_frames = -1, .fps = {}}));
  EXPECT_EQ(*read({R"({"fps":1,"do_sample_frames":true})", R"({"video":{"num_frames":-1}})"}),
            MediaSettings{.fps = 1.0})
      << "as vLLM samples what its loader keeps";
  EXPECT_TRUE(read({R"({"fps":1,"do_sample_frames":false})", R"({"video":{"fps":1}})"}).ok());
  for (const auto& [processor, io] :
       std::vector<Defaults>{{"[1]", ""},
                             {"{", ""},
                             {R"({"size":{}})", ""},
                             {R"({"fps":[1,2]})", ""},
                             {R"({"max_pixels":1.5})", ""},
                             {R"({"max_pixels":18446744073709551615})", ""},
                             {R"({"do_sample_frames":false})", ""},
                             {"", R"({"audio":{"x":1}})"},
                             {"", R"({"video":4})"},
                             {"", R"({"video":{"num_frames":0}})"},
                             {"", R"({"video":{"num_frames":"4"}})"},
                             {"", R"({"video":{"fps":0}})"},
                             {"", R"({"video":{"video_backend":"pyav"}})"},
                             {R"({"fps":1})", R"({"video":{"num_frames":4}})"},
                             {R"({"do_sample_frames":true})", R"({"video":{"num_frames":4}})"}}) {
    const auto refused = read({processor, io});
    ASSERT_FALSE(refused.ok()) << processor << io;
    EXPECT_NE(refused.error().message.find("--m"), std::string::npos) << refused.error().message;
  }
  EXPECT_NE(read({"", R"({"video":{"x":1}})"}).error().message.find("--media-io-kwargs.video.x"),
            std::string::npos);
}

}  // namespace
}  // namespace valora
