#include "media/fetch/loader.h"

#include <atomic>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "media/testing/clips.h"
#include "media/testing/pictures.h"

namespace valora::media {
namespace {

using namespace testing;

std::string data_url(const char* type, const Bytes& bytes) {
  return std::string("data:") + type + ";base64," + base64(bytes);
}
std::string image_url(int seed, int side = 56) {
  return data_url("image/png", encode_png(make_picture(side, side, seed)));
}

Result<std::shared_ptr<const VisualInput>> load_image(Loader& loader, const Bytes& bytes,
                                                      const std::stop_token& stop = {}) {
  return loader.load(data_url("image/any", bytes), MediaKind::kImage, stop);
}
Result<std::shared_ptr<const VisualInput>> load_video(Loader& loader, const Bytes& bytes,
                                                      const std::stop_token& stop = {}) {
  return loader.load(data_url("video/any", bytes), MediaKind::kVideo, stop);
}

std::shared_ptr<const Processor> qwen(const Json& settings = Json::object()) {
  return *make_qwen2_vl_processor(
      settings, nullptr,
      {settings.value("patch_size", 14), settings.value("temporal_patch_size", 2),
       settings.value("merge_size", 2)});
}

Loader make_loader(size_t cache_bytes = 64 << 20, Limits limits = {}) {
  return Loader(qwen(), FetchPolicy{}, limits, cache_bytes);
}

TEST(Loader, EqualBytesArePreparedOnce) {
  Loader loader = make_loader();
  const auto first = loader.load(image_url(1), MediaKind::kImage);
  ASSERT_TRUE(first.ok()) << first.error().message;
  const auto again = loader.load(image_url(1), MediaKind::kImage);
  const auto as_bytes = load_image(loader, encode_png(make_picture(56, 56, 1)));
  const auto other = loader.load(image_url(2), MediaKind::kImage);
  EXPECT_EQ(*first, *again);
  EXPECT_EQ(*first, *as_bytes);
  EXPECT_NE((*first)->digest, (*other)->digest);
  EXPECT_EQ(loader.stats().queries, 4u);
  EXPECT_EQ(loader.stats().hits, 2u);
}

TEST(Loader, RecordsOriginalPictureSize) {
  Loader loader = make_loader();
  const auto input =
      loader.load(data_url("image/png", encode_png(make_picture(71, 45, 1))), MediaKind::kImage);
  ASSERT_TRUE(input.ok()) << input.error().message;
  EXPECT_EQ((*input)->width, 71);
  EXPECT_EQ((*input)->height, 45);
}

TEST(Loader, DigestDependsOnSettingsAndKind) {
  const Bytes bytes = encode_jpeg(make_picture(56, 56));
  Loader loader = make_loader();
  Loader other(qwen({{"image_mean", 0.5}}), FetchPolicy{}, Limits{}, 0);
  const auto image = load_image(loader, bytes);
  const auto frame = loader.load(data_url("video/jpeg", bytes), MediaKind::kVideo);
  ASSERT_TRUE(image.ok() && frame.ok());
  EXPECT_NE((*image)->digest, (*frame)->digest);
  EXPECT_NE((*image)->digest, (*load_image(other, bytes))->digest);
  EXPECT_EQ((*frame)->kind, MediaKind::kVideo);
}

TEST(Loader, EvictsLeastRecentlyUsed) {
  Loader sizing = make_loader();
  const size_t one =
      sizeof(VisualInput) + (*sizing.load(image_url(0), MediaKind::kImage))->patches.size() * 4;
  Loader loader = make_loader(2 * one);
  const auto hits_of = [&](int seed) {
    const uint64_t before = loader.stats().hits;
    EXPECT_TRUE(loader.load(image_url(seed), MediaKind::kImage).ok());
    return loader.stats().hits - before;
  };
  EXPECT_EQ(hits_of(1), 0u);
  EXPECT_EQ(hits_of(2), 0u);
  EXPECT_EQ(hits_of(1), 1u);
  EXPECT_EQ(hits_of(3), 0u);  // 2 is evicted
  EXPECT_EQ(hits_of(1), 1u);
  EXPECT_EQ(hits_of(2), 0u);
  Loader none = make_loader(0);
  EXPECT_TRUE(none.load(image_url(1), MediaKind::kImage).ok());
  EXPECT_TRUE(none.load(image_url(1), MediaKind::kImage).ok());
  EXPECT_EQ(none.stats().hits, 0u);
}

TEST(Loader, ReturnsErrorsWithoutCaching) {
  Loader loader = make_loader();
  Bytes broken = encode_jpeg(make_picture(56, 56));
  broken.resize(broken.size() / 2);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(load_image(loader, broken).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(loader.stats().hits, 0u);
  EXPECT_FALSE(loader.load("file:///etc/hostname", MediaKind::kImage).ok());
}

TEST(Loader, FrameListsKeepEveryFrame) {
  Loader loader = make_loader();
  std::string url = "data:video/jpeg;base64,";
  for (int i = 0; i < 5; ++i) url += (i ? "," : "") + base64(encode_jpeg(make_picture(112, 84, i)));
  const auto video = loader.load(url, MediaKind::kVideo);
  ASSERT_TRUE(video.ok()) << video.error().message;
  EXPECT_EQ((*video)->grid_t, 3);
  EXPECT_EQ((*video)->seconds_per_grid, 1.0);
  Loader strict = make_loader(0, {.max_frames = 4});
  EXPECT_EQ(strict.load(url, MediaKind::kVideo).error().code, ErrorCode::kPayloadTooLarge);
  Loader small = make_loader(0, {.max_video_pixels = 5 * 112 * 84 - 1});
  EXPECT_EQ(small.load(url, MediaKind::kVideo).error().code, ErrorCode::kPayloadTooLarge);
}

TEST(Loader, VideoFilesAreSampled) {
  Clip clip;
  clip.levels.assign(40, 99);  // 4 s at 10 frames per second
  Loader loader = make_loader();
  const auto video = loader.load(data_url("video/avi", encode_clip(clip)), MediaKind::kVideo);
  ASSERT_TRUE(video.ok()) << video.error().message;
  EXPECT_EQ((*video)->grid_t, 4) << "2 frames a second, two to a temporal patch";
  EXPECT_DOUBLE_EQ((*video)->seconds_per_grid, 1.0);
  EXPECT_EQ(load_video(loader, encode_clip(clip)).value(), *video);
}

TEST(Loader, RefusesTooManyTokens) {
  Loader loader = make_loader(0, {.max_visual_tokens = 8});
  EXPECT_TRUE(loader.load(image_url(1, 56), MediaKind::kImage).ok());
  EXPECT_EQ(loader.load(image_url(1, 112), MediaKind::kImage).error().code,
            ErrorCode::kPayloadTooLarge);
  Clip clip;
  clip.levels.assign(40, 99);
  EXPECT_EQ(load_video(loader, encode_clip(clip)).error().code, ErrorCode::kPayloadTooLarge);
}

// A processor that blocks every preparation until it is released, and counts them.
class HeldProcessor final : public Processor {
 public:
  Result<VisualInput> image(const Image& image) const override {
    ++started;
    while (!released) std::this_thread::yield();
    return inner_->image(image);
  }
  Result<VisualInput> video(const std::vector<Image>& frames, double fps,
                            const std::stop_token& stop) const override {
    ++started;
    while (!released && !stop.stop_requested()) std::this_thread::yield();
    return inner_->video(frames, fps, stop);
  }
  Result<int64_t> image_tokens(int width, int height) const override {
    return inner_->image_tokens(width, height);
  }
  Result<int64_t> video_tokens(int width, int height, int64_t frames) const override {
    return inner_->video_tokens(width, height, frames);
  }
  FrameSampler frame_sampler() const override { return inner_->frame_sampler(); }
  Digest settings_digest() const override { return inner_->settings_digest(); }

  mutable std::atomic<int> started = 0;
  std::atomic<bool> released = false;

 private:
  std::shared_ptr<const Processor> inner_ = qwen();
};

Bytes short_clip() {
  Clip clip;
  clip.levels.assign(8, 99);
  return encode_clip(clip);
}

// Two requests for one video; the first one prepares it.
class SharedVideo : public ::testing::Test {
 protected:
  void begin() {
    first_ = std::async(std::launch::async,
                        [this] { return load_video(loader_, clip_, first_stop_.get_token()); });
    while (processor_->started == 0) std::this_thread::yield();
    second_ = std::async(std::launch::async,
                         [this] { return load_video(loader_, clip_, second_stop_.get_token()); });
    while (loader_.stats().queries < 2) std::this_thread::yield();
  }

  const Bytes clip_ = short_clip();
  const std::shared_ptr<HeldProcessor> processor_ = std::make_shared<HeldProcessor>();
  Loader loader_{processor_, FetchPolicy{}, Limits{}, 10 << 20};
  std::stop_source first_stop_, second_stop_;
  std::future<Result<std::shared_ptr<const VisualInput>>> first_, second_;
};

TEST_F(SharedVideo, PreparerMayCancel) {
  begin();
  first_stop_.request_stop();
  processor_->released = true;
  EXPECT_TRUE(second_.get().ok());
  (void)first_.get();
  EXPECT_EQ(processor_->started, 1);
  EXPECT_TRUE(load_video(loader_, clip_).ok());
  EXPECT_EQ(processor_->started, 1) << "it was kept";
}

TEST_F(SharedVideo, WaiterMayCancel) {
  begin();
  second_stop_.request_stop();
  EXPECT_EQ(second_.get().error().code, ErrorCode::kCancelled) << "at once, though it is prepared";
  processor_->released = true;
  EXPECT_TRUE(first_.get().ok());
}

TEST_F(SharedVideo, AbandonedWorkStopsAndRestarts) {
  begin();
  first_stop_.request_stop();
  second_stop_.request_stop();
  EXPECT_EQ(second_.get().error().code, ErrorCode::kCancelled);
  EXPECT_EQ(first_.get().error().code, ErrorCode::kCancelled) << "it was never released";
  processor_->released = true;
  EXPECT_TRUE(load_video(loader_, clip_).ok());
  EXPECT_EQ(processor_->started, 2);
}

TEST(Loader, FindReturnsOnlyCachedInputs) {
  Loader loader = make_loader();
  const auto fetched = loader.fetch(image_url(1), MediaKind::kImage);
  ASSERT_TRUE(fetched.ok());
  EXPECT_EQ(loader.find(*fetched), nullptr);
  EXPECT_EQ(loader.stats().queries, 0u);
  const auto prepared = loader.prepare(*fetched);
  ASSERT_TRUE(prepared.ok());
  EXPECT_EQ(loader.find(*fetched), *prepared);
  EXPECT_EQ(loader.stats().queries, 2u);
  EXPECT_EQ(loader.stats().hits, 1u);
}

TEST(Loader, SimultaneousRequestsShareOnePreparation) {
  const auto processor = std::make_shared<HeldProcessor>();
  Loader loader(processor, FetchPolicy{}, Limits{}, 10 << 20);
  const Bytes bytes = encode_png(make_picture(56, 56));
  std::vector<std::shared_ptr<const VisualInput>> inputs(8);
  std::vector<std::thread> threads;
  for (auto& input : inputs)
    threads.emplace_back([&] { input = load_image(loader, bytes).value(); });
  while (loader.stats().queries < inputs.size()) std::this_thread::yield();
  processor->released = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(processor->started, 1);
  for (const auto& input : inputs) EXPECT_EQ(input, inputs[0]);
  EXPECT_EQ(loader.stats().hits, inputs.size() - 1);
}

}  // namespace
}  // namespace valora::media
