// Encoding images in pieces between steps, on a fake tower.
#include "engine/runner/visual_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "engine/adapters/adapter_tensors.h"
#include "engine/runner/model_fault.h"

namespace valora {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Encodes one patch per piece, 10 ms each, and records the first patch value of each piece's item.
class SlowTower final : public models::Model {
 public:
  explicit SlowTower(SimulatedClock& clock) : Model({}), clock_(clock) {}

  at::Tensor forward(const models::Batch&) const override { return {}; }
  at::Tensor logits(const at::Tensor&, const models::HeadAdaptation&) const override { return {}; }
  std::vector<models::Linear*> decoder_linears() override { return {}; }
  std::unique_ptr<models::Encoding> begin_encoding(std::vector<models::VisualItem> items,
                                                   models::PieceSize) const override {
    runs.push_back(static_cast<int>(items.size()));
    auto encoding = std::make_unique<models::Encoding>(models::PieceSize{.products = 1, .rows = 1});
    for (const models::VisualItem& item : items) {
      const auto mark = static_cast<int>(item.input->patches[0]);
      encoding->add({item.input->patch_count(), 1, [this, mark](int64_t begin, int64_t) {
                       clock_.advance(std::chrono::milliseconds(10));
                       if (mark == broken && begin == 1) throw std::bad_alloc();
                       worked.push_back(mark);
                     }});
    }
    encoding->finish_with([items] {
      std::vector<at::Tensor> embeddings;
      for (const models::VisualItem& item : items)
        embeddings.push_back(at::full({item.input->tokens, 2}, item.input->patches[0]));
      return embeddings;
    });
    return encoding;
  }

  mutable std::vector<int> worked, runs;
  int broken = -1;

 private:
  SimulatedClock& clock_;
};

class VisualEncoderTest : public ::testing::Test {
 protected:
  WantedVisual visual(int mark, int patches, const serving::AppliedAdapter* adapter = nullptr) {
    auto input = std::make_shared<media::VisualInput>();
    input->grid_h = 1, input->grid_w = patches;
    input->tokens = 1;
    input->patches = std::vector<float>{static_cast<float>(mark)};
    WantedVisual visual{DigestBuilder().add(mark).finish(), std::move(input), {}};
    if (adapter) visual.adapters.push_back(*adapter);
    return visual;
  }
  void request(const std::vector<WantedVisual>& visuals) { encoder_.request(visuals); }
  // Runs for the time of `pieces` pieces. Returns the items worked on, in order.
  std::vector<int> run(int pieces) {
    tower_.worked.clear();
    encoder_.run(std::chrono::milliseconds(10 * pieces));
    return tower_.worked;
  }
  float value(const WantedVisual& visual) { return encoder_.get(visual.key)[0][0].item<float>(); }

  SimulatedClock clock_;
  SlowTower tower_{clock_};
  const std::unique_ptr<ops::LaunchedWork> nothing_ = ops::launched_work(at::kCPU);
  VisualEncoder encoder_{tower_, at::kFloat, 1 << 10, clock_, {}, *nothing_};
};

TEST_F(VisualEncoderTest, LargeImageUsesGivenTimeBudget) {
  const auto image = visual(1, 5000);
  request({image});
  EXPECT_EQ(run(3).size(), 3u);
  EXPECT_FALSE(encoder_.has(image.key));
  EXPECT_THROW(encoder_.get(image.key), c10::Error);
  EXPECT_EQ(run(4990).size(), 4990u);
  request({image});
  EXPECT_EQ(run(100).size(), 7u) << "what is left";
  EXPECT_TRUE(encoder_.has(image.key));
  EXPECT_EQ(value(image), 1);
  EXPECT_THAT(run(100), IsEmpty());
  EXPECT_EQ(encoder_.work().visuals, 1u);
  EXPECT_NEAR(encoder_.work().seconds, 50, 1e-6);
}

TEST_F(VisualEncoderTest, UnneededImageIsDroppedAtOnce) {
  const auto large = visual(1, 5000), other = visual(2, 2);
  request({large});
  run(10);
  request({other});
  EXPECT_THAT(run(100), ElementsAre(2, 2));
  request({});
  EXPECT_THAT(run(100), IsEmpty());
  request({large});
  EXPECT_EQ(run(6000).size(), 5000u) << "it starts over";
}

TEST_F(VisualEncoderTest, ResultsLiveWhileNeeded) {
  const auto one = visual(1, 2), two = visual(2, 2);
  VisualEncoder without_cache(tower_, at::kFloat, 0, clock_, {}, *nothing_);
  without_cache.request(std::vector{one, two});
  without_cache.run(std::chrono::seconds(1));
  for (int i = 0; i < 3; ++i) without_cache.request(std::vector{one});
  EXPECT_TRUE(without_cache.has(one.key));
  EXPECT_FALSE(without_cache.has(two.key));
  EXPECT_EQ(without_cache.get(one.key)[0][0].item<float>(), 1);
}

TEST_F(VisualEncoderTest, CachedImagesAreReadyAtOnce) {
  const auto image = visual(1, 2);
  request({image});
  run(10);
  request({});
  EXPECT_TRUE(encoder_.has(image.key));
  request({image});
  EXPECT_THAT(run(10), IsEmpty());
  EXPECT_EQ(value(image), 1);
  EXPECT_EQ(encoder_.cache().queries(), 2u);
  EXPECT_EQ(encoder_.cache().hits(), 1u);
}

TEST_F(VisualEncoderTest, SmallImagesAreEncodedTogether) {
  std::vector<WantedVisual> images;
  for (int i = 0; i < 3; ++i) images.push_back(visual(i, 2000));
  images.push_back(images[0]);  // two requests share one image
  request(images);
  run(10000);
  EXPECT_THAT(tower_.runs, ElementsAre(2, 1));
  for (const WantedVisual& image : images) EXPECT_TRUE(encoder_.has(image.key));
}

TEST_F(VisualEncoderTest, SmallImageOvertakesLargeImage) {
  const auto large = visual(1, 5000), small = visual(2, 3), equal = visual(3, 5000);
  request({large});
  run(2);
  request({large, equal, small});
  EXPECT_THAT(run(6), ::testing::UnorderedElementsAre(1, 1, 1, 2, 2, 2)) << "half of the time";
  EXPECT_TRUE(encoder_.has(small.key));
  const auto worked = run(4000);
  EXPECT_THAT(worked, ::testing::Each(1)) << "equal ones come one after the other";
}

TEST_F(VisualEncoderTest, FailureEndsOnlyItsImage) {
  const auto sound = visual(1, 3), broken = visual(2, 3);
  tower_.broken = 2;
  request({sound, broken});
  run(1000);
  EXPECT_THAT(tower_.runs, ElementsAre(2, 1, 1)) << "together, then each alone";
  EXPECT_EQ(value(sound), 1);
  ASSERT_TRUE(encoder_.has(broken.key));
  ASSERT_FALSE(encoder_.find(broken.key)->ok());
  EXPECT_EQ(encoder_.find(broken.key)->error().message, "out of memory");
  request({});
  EXPECT_FALSE(encoder_.has(broken.key)) << "the next request tries again";
}

TEST_F(VisualEncoderTest, RunIsDroppedWhenItsAdapterMayBeEvicted) {
  serving::LoadedAdapter loaded;
  auto weights = std::make_shared<RankWeights>();
  weights->emplace_back(0);
  loaded.tensors = std::make_shared<AdapterTensors>(std::move(weights));
  const serving::AppliedAdapter adapter{
      std::shared_ptr<const serving::LoadedAdapter>(&loaded, [](auto*) {}), 1};
  const auto adapted = visual(1, 3, &adapter), plain = visual(2, 3);
  request({adapted, plain});
  run(4);
  request({plain});  // the adapter may be evicted now
  EXPECT_THAT(run(100), ElementsAre(2, 2, 2));
  EXPECT_THAT(tower_.runs, ElementsAre(2, 1));

  request({});
  const auto a = visual(3, 3), b = visual(4, 3);
  request({a, b});
  run(4);
  request({b});
  EXPECT_THAT(run(100), ElementsAre(4, 4)) << "without adapters the run goes on";
}

// A GPU-like device: a piece takes a second, and launching does not wait for it.
class SlowDevice final : public ops::LaunchedWork {
 public:
  explicit SlowDevice(SimulatedClock& clock) : clock_(clock) {}

  void end_part() override {
    most_ = std::max(most_, ++running_);
    while (running_ > 1) run();
  }
  void wait() override {
    while (running_ > 0) run();
    if (broken) TORCH_CHECK(false, "CUDA error: an illegal memory access was encountered");
  }
  int running() const { return running_; }
  int most() const { return most_; }

  bool broken = false;

 private:
  void run() {
    clock_.advance(std::chrono::seconds(1));
    --running_;
  }

  SimulatedClock& clock_;
  int running_ = 0, most_ = 0;  // in parts
};

TEST_F(VisualEncoderTest, PieceTimeIncludesDeviceTime) {
  SlowDevice device(clock_);
  VisualEncoder encoder(tower_, at::kFloat, 0, clock_, {}, device);
  encoder.request(std::vector{visual(1, 20)});
  const TimePoint begin = clock_.now();
  encoder.run(std::chrono::seconds(3));
  EXPECT_EQ(device.running(), 0) << "the step that follows begins at once";
  EXPECT_EQ(device.most(), 2) << "a piece is launched while the one before runs";
  const double taken = seconds(clock_.now() - begin);
  EXPECT_GE(taken, 3);
  EXPECT_LE(taken, 5.1) << "the bound on the gap between tokens holds but for a piece";
  EXPECT_EQ(encoder.work().seconds, taken);
}

TEST_F(VisualEncoderTest, DeviceFailureIsNotBlamedOnImage) {
  SlowDevice device(clock_);
  VisualEncoder encoder(tower_, at::kFloat, 0, clock_, {}, device);
  const auto image = visual(1, 3);
  encoder.request(std::vector{image});
  device.broken = true;
  EXPECT_THROW(encoder.run(std::chrono::seconds(100)), c10::Error);
  const auto refused = visual(2, 3);  // fails when a piece is launched
  tower_.broken = 2;
  encoder.request(std::vector{refused});
  EXPECT_THROW(encoder.run(std::chrono::seconds(100)), DeviceLostError);
  EXPECT_FALSE(encoder.has(refused.key));
}

}  // namespace
}  // namespace valora
