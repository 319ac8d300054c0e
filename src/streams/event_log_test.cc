#include "streams/event_log.h"

#include <gtest/gtest.h>

namespace valora::streams {
namespace {

TEST(EventLog, KeepsTheLastOnes) {
  EventLog log(3);
  for (int i = 0; i < 5; ++i) log.add("answers", {{"i", i}});
  EXPECT_EQ(log.last(), 5);
  const auto kept = log.after(0, 10);
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[0]->json, R"({"id":3,"type":"answers","i":2})");
  EXPECT_EQ(log.after(4, 10).size(), 1u);
  EXPECT_EQ(log.after(0, 2).size(), 2u);
}

TEST(EventLog, ListenersMissNoneAndAreToldTheEnd) {
  EventLog log(10);
  log.add("a", OrderedJson::object());
  std::vector<int64_t> first, second;
  const auto into = [](std::vector<int64_t>& out) {
    return [&out](const EventPtr& event) { out.push_back(event ? event->id : -1); };
  };
  log.listen(0, into(first));
  const uint64_t forgotten = log.listen(1, into(second));
  log.add("b", OrderedJson::object());
  log.forget(forgotten);
  log.add("c", OrderedJson::object());
  log.close();
  EXPECT_EQ(first, std::vector<int64_t>({1, 2, 3, -1}));
  EXPECT_EQ(second, std::vector<int64_t>({2}));
  log.listen(2, into(second));
  EXPECT_EQ(second, std::vector<int64_t>({2, 3, -1}));
}

}  // namespace
}  // namespace valora::streams
