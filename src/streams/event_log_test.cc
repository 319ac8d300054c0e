#include "streams/event_log.h"

#include <gtest/gtest.h>

namespace valora::streams {
namespace {

void add(EventLog& log, const std::string& type) {
  log.add(std::vector<EventDraft>{{type, OrderedJson::object()}});
}

TEST(EventLog, KeepsTheLastOnes) {
  EventLog log(3);
  const std::vector<EventDraft> five{{"answers", {{"i", 0}}},
                                     {"answers", {{"i", 1}}},
                                     {"answers", {{"i", 2}}},
                                     {"answers", {{"i", 3}}},
                                     {"answers", {{"i", 4}}}};
  EXPECT_EQ(log.add(five).size(), 5u);
  EXPECT_EQ(log.last(), 5);
  const auto kept = log.after(0, 10);
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[0]->json, R"({"id":3,"type":"answers","i":2})");
  EXPECT_EQ(log.after(4, 10).size(), 1u);
  EXPECT_EQ(log.after(0, 2).size(), 2u);
}

TEST(EventLog, ListenersMissNoneAndAreToldTheEnd) {
  EventLog log(10);
  add(log, "a");
  std::vector<int64_t> first, second;
  const auto into = [](std::vector<int64_t>& out) {
    return [&out](const EventPtr& event) { out.push_back(event ? event->id : -1); };
  };
  log.listen(0, into(first));
  const uint64_t forgotten = log.listen(1, into(second));
  add(log, "b");
  log.forget(forgotten);
  add(log, "c");
  log.close();
  EXPECT_EQ(first, std::vector<int64_t>({1, 2, 3, -1}));
  EXPECT_EQ(second, std::vector<int64_t>({2}));
  log.listen(2, into(second));
  EXPECT_EQ(second, std::vector<int64_t>({2, 3, -1}));
}

}  // namespace
}  // namespace valora::streams
