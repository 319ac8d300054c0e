// Which pushed frames a stream asks about, with a chat that answers at once.
#include "streams/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "media/image/encode_jpeg.h"

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
  void begin(const std::string& fields) {
    auto spec = parse_stream_spec(R"({"source":"push",)" + fields + "}");
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    stream_ = std::make_unique<Stream>(
        "s", "", std::move(*spec),
        StreamParts{.ask = [this](const std::string&, const std::string& body,
                                  const std::function<void(ChatAnswer)>& done) {
          done(answer(body));
          return [] {};
        }});
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

// The newest frame of a window decides.
TEST_F(Streams, AWindowIsStillIfItsNewestFrameIs) {
  begin(R"("skills":["a"],"window":{"frames":2},"skip_still":true)");
  EXPECT_TRUE(push(picture(10)));
  EXPECT_TRUE(push(picture(40)));
  EXPECT_FALSE(push(picture(40)));
  EXPECT_TRUE(push(picture(10)));
}

}  // namespace
}  // namespace valora::streams
