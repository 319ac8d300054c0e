// Which pushed frames a stream asks about, with a chat that answers at once.
#include "streams/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/testing/temp_dir.h"
#include "media/image/encode_jpeg.h"
#include "media/testing/clips.h"

namespace valora::streams {
namespace {

using ::testing::ElementsAre;

// A grey picture with a square.
std::string picture(int square_at, int width = 128, uint8_t brightness = 220) {
  media::Image image{width, 72, std::vector<uint8_t>(static_cast<size_t>(width) * 72 * 3, 90)};
  for (int y = 20; y < 28; ++y)
    for (int x = square_at; x < square_at + 8; ++x)
      for (int c = 0; c < 3; ++c)
        image.rgb[static_cast<size_t>((y * width + x) * 3 + c)] = brightness;
  return media::encode_jpeg(image, 92).value();
}

class Streams : public ::testing::Test {
 protected:
  void begin(const std::string& fields, const std::string& source = "push",
             const std::string& folder = {}) {
    auto spec = parse_stream_spec(R"({"source":")" + source + "\"," + fields + "}");
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    media::FetchPolicy policy;
    policy.allowed_local_path = folder;
    stream_ = std::make_unique<Stream>(
        "s", "", std::move(*spec),
        StreamParts{.ask =
                        [this](const std::string&, const std::string& body,
                               const std::function<void(ChatAnswer)>& done) {
                          done(answer(body));
                          return [] {};
                        },
                    .policy = policy,
                    .clock = &clock_,
                    .unix_time = [this] { return unix_time_.load(); }});
    stream_->start();
  }

  // Answers "yes" to each skill of the chat, or not at all.
  ChatAnswer answer(const std::string& body) {
    ++questions_;
    if (fails_) return {500, R"({"error":{"message":"no"}})"};
    Json out = Json::object();
    const Json chat = Json::parse(body);
    for (const Json& skill : chat["skills"]) {
      const Json& name = skill.is_string() ? skill : skill["model"];
      out[name.get<std::string>()] = {{"choices", {{{"message", {{"content", "yes"}}}}}}};
    }
    return {200, Json{{"skills", out}}.dump()};
  }

  // Pushes a frame and waits until it was asked about or passed over. Returns true if it was asked
  // about.
  bool push(const std::string& bytes) {
    const int before = questions_;
    const auto id = stream_->push(bytes);
    EXPECT_TRUE(id.ok()) << id.error().message;
    while (true) {
      const StreamCounts counts = stream_->counts();
      if (counts.answered + counts.still + counts.skipped + counts.failed == *id) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return questions_ > before;
  }

  std::vector<std::string> events() {
    std::vector<std::string> types;
    for (const EventPtr& event : stream_->events().after(0, 1000)) types.push_back(event->type);
    return types;
  }

  SimulatedClock clock_;
  std::atomic<double> unix_time_ = 1e9;
  std::atomic<int> questions_ = 0;
  std::atomic<bool> fails_ = false;
  std::unique_ptr<Stream> stream_;
};

TEST_F(Streams, AStillFrameIsNotAskedAbout) {
  begin(R"("skills":["a"],"skip_still":true)");
  EXPECT_TRUE(push(picture(10)));
  EXPECT_FALSE(push(picture(10)));
  EXPECT_FALSE(push(picture(10, 128, 221)));
  EXPECT_TRUE(push(picture(14)));
  EXPECT_FALSE(push(picture(14)));
  EXPECT_TRUE(push(picture(14, 120))) << "another size";
  const StreamCounts counts = stream_->counts();
  EXPECT_EQ(counts.answered, 3);
  EXPECT_EQ(counts.still, 3);
  EXPECT_EQ(counts.skipped, 0);
  EXPECT_THAT(events(), ElementsAre("state", "answers", "answers", "answers"));
  EXPECT_EQ(stream_->frame(0)->id, 6);
}

TEST_F(Streams, EveryFrameIsAskedAboutByDefault) {
  begin(R"("skills":["a"])");
  EXPECT_TRUE(push(picture(10)));
  EXPECT_TRUE(push(picture(10)));
}

TEST_F(Streams, APauseOrAFailureEndsWhatStands) {
  begin(R"("skills":["a"],"skip_still":{"at_most":3600})");
  EXPECT_TRUE(push(picture(10)));
  stream_->pause();
  stream_->start();
  EXPECT_TRUE(push(picture(10)));
  EXPECT_FALSE(push(picture(10)));
  fails_ = true;
  EXPECT_TRUE(push(picture(40)));
  fails_ = false;
  EXPECT_TRUE(push(picture(40)));
  EXPECT_FALSE(push(picture(40)));
}

// As if the frames had been asked about: the event begins after three frames.
TEST_F(Streams, AStandingAnswerCountsForEvents) {
  begin(R"("skip_still":true,
           "skills":[{"model":"a","event":{"when":{"contains":"yes"},"start_after":3}}])");
  for (int i = 0; i < 3; ++i) push(picture(10));
  EXPECT_EQ(questions_, 1);
  EXPECT_THAT(events(), ElementsAre("state", "answers", "start"));
  EXPECT_NE(stream_->frame(3), nullptr);
  EXPECT_EQ(stream_->counts().events, 1);
}

TEST_F(Streams, AChangeEndsAtAStillFrame) {
  begin(R"("skip_still":true,"skills":[{"model":"a","event":{"when":{"not":{"changes":true}}}}])");
  push(picture(10));
  push(picture(10));
  EXPECT_EQ(questions_, 1);
  EXPECT_THAT(events(), ElementsAre("state", "answers", "start"));
}

TEST_F(Streams, AJumpOfTheWallClockChangesNothing) {
  begin(R"("skills":[{"model":"a","every":10}],"skip_still":{"at_most":30})");
  EXPECT_TRUE(push(picture(10)));
  clock_.advance(std::chrono::seconds(5));
  unix_time_ = 2e9;
  EXPECT_FALSE(push(picture(40))) << "not due for 5 s more";
  clock_.advance(std::chrono::seconds(6));
  unix_time_ = 0.5e9;
  EXPECT_TRUE(push(picture(40))) << "due";
  clock_.advance(std::chrono::seconds(40));
  EXPECT_TRUE(push(picture(40))) << "still for longer than at_most";
  EXPECT_EQ(stream_->counts().lag, 0);
  for (const EventPtr& event : stream_->events().after(0, 1000)) {
    if (event->type != "answers") continue;
    EXPECT_NE(event->json.find("\"lag\":0.0"), std::string::npos) << event->json;
  }
}

// The newest frame of a window decides.
TEST_F(Streams, AWindowIsStillIfItsNewestFrameIs) {
  begin(R"("skills":["a"],"window":{"frames":2},"skip_still":true)");
  EXPECT_TRUE(push(picture(10)));
  EXPECT_TRUE(push(picture(40)));
  EXPECT_FALSE(push(picture(40)));
  EXPECT_TRUE(push(picture(10)));
}

// Greys: 103 and 98 are within the threshold of 100, and 118 of 120. The corner is white
// throughout.
TEST_F(Streams, BlocksOfAFileThatStandAreThoseOfTheFrameBefore) {
  const valora::testing::TempDir folder;
  const std::string path =
      media::testing::write_clip({.levels = {100, 103, 98, 120, 118}}, folder.path());
  begin(R"("skills":["a"],"realtime":false,"fps":60,"still_blocks":{"threshold":8})",
        "file://" + path, folder.path());
  while (stream_->state() != StreamState::kEnded)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const StreamCounts counts = stream_->counts();
  EXPECT_EQ(counts.answered, 5);
  EXPECT_EQ(counts.blocks.all, 5 * 12);
  EXPECT_EQ(counts.blocks.still, 12 + 12 + 1 + 12);
  const std::string& shown = stream_->frame(0)->bytes;
  const auto image =
      media::decode_image({reinterpret_cast<const uint8_t*>(shown.data()), shown.size()}, {});
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image->rgb.back(), 120);
}

}  // namespace
}  // namespace valora::streams
