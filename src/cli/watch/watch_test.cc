#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/json/parse_ordered.h"
#include "base/testing/temp_dir.h"
#include "cli/watch/event_line.h"
#include "cli/watch/server_client.h"

namespace valora::cli {
namespace {

std::string line_of(const std::string& event) {
  ::setenv("TZ", "UTC", 1);
  return event_line(parse_ordered(event));
}

TEST(EventLine, EachTypeIsOneLine) {
  EXPECT_EQ(line_of(R"({"id": 1, "type": "state", "time": 3661.5, "state": "waiting",
                        "reason": "the host answered 404"})"),
            "01:01:01 state waiting: the host answered 404");
  EXPECT_EQ(line_of(R"({"type": "state", "time": 0, "state": "running"})"),
            "00:00:00 state running");
  EXPECT_EQ(line_of(R"({"type": "answers", "time": 0, "frame": 3, "answers": {"b": {"content":
                        "two\nlines", "score": 0.987}, "a": {"error": {"message": "no"}}}})"),
            R"(00:00:00 answers frame 3: b: two\nlines (0.99); a: error: no)");
  EXPECT_EQ(line_of(R"({"type": "answers", "time": 0, "frame": 3, "error": {"message": "late"}})"),
            "00:00:00 answers frame 3: error: late");
  EXPECT_EQ(line_of(R"({"type": "start", "time": 0, "skill": "coins", "frame": 7,
                        "answer": {"content": "\u001b[2J"}})"),
            R"(00:00:00 start coins, frame 7: \x1b[2J)");
  EXPECT_EQ(line_of(R"({"type": "x"})"), "00:00:00 x ");
}

TEST(SourceUrl, PathsOfFilesThatAreThereBecomeUrls) {
  const testing::TempDir dir;
  const std::string path = dir.write("a clip#1.mp4", "x");
  EXPECT_EQ(source_url(path), "file://" + dir.path() + "/a%20clip%231.mp4");
  EXPECT_EQ(source_url(dir.path() + "/x/../a clip#1.mp4"), dir.path() + "/x/../a clip#1.mp4");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  EXPECT_EQ(source_url("./a clip#1.mp4"), "file://" + dir.path() + "/a%20clip%231.mp4");
  std::filesystem::current_path(before);
  for (const char* other : {"rtsp://cam/x", "push", "nowhere.mp4"})
    EXPECT_EQ(source_url(other), other);
}

TEST(SseReader, PiecesBecomeEventsUntilEnough) {
  SseReader reader;
  std::vector<std::string> taken;
  const auto take = [&](std::string_view data) {
    taken.emplace_back(data);
    return taken.size() < 3;
  };
  EXPECT_TRUE(reader.read("id: 1\nevent: state\nda", take));
  EXPECT_TRUE(reader.read("ta: {\"a\": 1}\n\n: nothing\ndata: 2", take));
  EXPECT_EQ(taken, std::vector<std::string>{"{\"a\": 1}"});
  EXPECT_TRUE(reader.read("2\n", take));
  EXPECT_FALSE(reader.read("data: 3\ndata: 4\n", take));
  EXPECT_EQ(taken, (std::vector<std::string>{"{\"a\": 1}", "22", "3"}));
}

}  // namespace
}  // namespace valora::cli
