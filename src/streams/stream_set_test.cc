#include "streams/stream_set.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/testing/temp_dir.h"

namespace valora::streams {
namespace {

StreamSpec pushed() { return parse_stream_spec(R"({"source":"push","skills":["a"]})").value(); }

StreamParts no_answers() {
  return {.ask = [](const std::string&, const std::string&,
                    const std::function<void(ChatAnswer)>&) { return [] {}; }};
}

TEST(StreamSets, LimitsHoldForRequestsAtOnce) {
  auto set = StreamSet::open("", {.streams = 4, .per_user = 3}).value();
  set->resume(no_answers());
  std::atomic<int> begun = 0, full = 0;
  std::vector<std::jthread> clients;
  for (int i = 0; i < 16; ++i)
    clients.emplace_back([&, i] {
      const auto added = set->add(i % 4 == 0 ? "ann" : "bob", pushed(), true);
      if (added.ok())
        ++begun;
      else if (added.error().code == ErrorCode::kQueueFull)
        ++full;
    });
  clients.clear();
  EXPECT_EQ(begun, 4);
  EXPECT_EQ(full, 12);
  EXPECT_EQ(set->all().size(), 4u);
}

// As with a full disk. The error names no path of the server.
TEST(StreamSets, AFolderThatCannotBeWrittenChangesNothing) {
  const valora::testing::TempDir folder;
  const std::string dir = folder.path() + "/streams";
  auto set = StreamSet::open(dir, {}).value();
  set->resume(no_answers());
  const StreamPtr kept = set->add("", pushed(), false).value();
  std::filesystem::rename(dir, folder.path() + "/gone");
  const auto added = set->add("", pushed(), false);
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(added.error().message.find(folder.path()), std::string::npos);
  EXPECT_EQ(set->all().size(), 1u);
  EXPECT_EQ(set->set_paused(kept, true).error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(kept->paused());
  std::filesystem::rename(folder.path() + "/gone", dir);
  EXPECT_TRUE(set->set_paused(kept, true).ok());
  EXPECT_TRUE(kept->paused());
}

}  // namespace
}  // namespace valora::streams
