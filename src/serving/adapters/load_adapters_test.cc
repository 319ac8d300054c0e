// Calls about different adapters at the same time, and of one name in their order.
#include <gmock/gmock.h>

#include <mutex>

#include "serving/testing/fake_engine_fixture.h"

namespace valora::serving {
namespace {

using namespace testing;
using ::testing::ElementsAre;

class LoadAdaptersTest : public FakeEngineTest {
 protected:
  LoadAdaptersTest() {
    on_read_ = [this](const LoadAdapter& request) {
      if (request.path != "slow folder") return;
      gate_.arrive();
      gate_.pass();
    };
  }
  ~LoadAdaptersTest() override { engine_.reset(); }  // before what its threads use

  void note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(what);
  }
  void load_later(const std::string& name, const std::string& path, bool replace = false) {
    engine_->load_adapter({.name = name, .path = path, .replace = replace},
                          [this, path](const Result<AdapterCard>& card) {
                            note((card.ok() ? "loaded " : "not loaded ") + path);
                          });
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const AdapterCard& card : engine_->adapters()) names.push_back(card.name);
    return names;
  }

  Gate gate_;
  std::mutex mutex_;
  std::vector<std::string> notes_;
};

TEST_F(LoadAdaptersTest, SlowReadDelaysNoOtherName) {
  start();
  ASSERT_TRUE(load("old", "old folder").ok());
  load_later("slow", "slow folder");
  gate_.wait_for_arrival();
  EXPECT_TRUE(load({.name = "new", .path = "new folder", .pinned = true}).ok());
  EXPECT_TRUE(load({.name = "other", .path = "", .same_as = "new"}).ok());
  EXPECT_TRUE(pin("old").ok());
  EXPECT_TRUE(pin("old", false).ok());
  EXPECT_TRUE(unload("old").ok());
  EXPECT_THAT(names(), ElementsAre("new", "other"));
  gate_.open();
  wait_until([&] { return names().size() == 3; });
  EXPECT_EQ(engine_->check(), "");
}

TEST_F(LoadAdaptersTest, CallsOfOneNameRunInTheirOrder) {
  start();
  load_later("slow", "slow folder");
  gate_.wait_for_arrival();
  engine_->pin_adapter("slow", true, {}, [this](const Status& status) {
    note(status.ok() ? "pinned" : status.error().message);
  });
  load_later("slow", "second folder", true);
  engine_->unload_adapter("slow", {}, [this](const Status& status) {
    note(status.ok() ? "unloaded" : status.error().message);
  });
  load_later("slow", "third folder");
  ASSERT_TRUE(load("fast", "fast folder").ok());
  {
    const std::lock_guard lock(mutex_);
    EXPECT_THAT(notes_, ElementsAre()) << "they wait for the first call";
  }
  gate_.open();
  ASSERT_TRUE(unload("slow").ok());
  EXPECT_THAT(notes_, ElementsAre("loaded slow folder", "pinned", "loaded second folder",
                                  "unloaded", "loaded third folder"));
  EXPECT_THAT(names(), ElementsAre("fast"));
  EXPECT_EQ(engine_->check(), "");
}

// Names whose contents are the same share their places in the pool and their pins.
TEST_F(LoadAdaptersTest, NamesOfSharedContentsChangeAtOnce) {
  options_.memory.pool_bytes = 64 * kFakeBlockBytes;
  start();
  std::vector<std::thread> clients;
  for (int client = 0; client < 6; ++client)
    clients.emplace_back([&, client] {
      const std::string name = "name " + std::to_string(client);
      for (int i = 0; i < 60; ++i) {
        const std::string path = (client + i) % 2 == 0 ? "even" : "odd";
        ASSERT_TRUE(load({.name = name, .path = path, .replace = true, .pinned = i % 3 == 0}).ok());
        ASSERT_TRUE(pin(name, i % 2 == 0).ok());
        if (i % 4 == 0) {
          ASSERT_TRUE(unload(name).ok());
        }
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(engine_->check(), "");
  for (int client = 0; client < 6; ++client) {
    const std::string name = "name " + std::to_string(client);
    ASSERT_TRUE(pin(name, false).ok());
  }
  // Nothing is pinned any longer: other contents find the whole share.
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(load({.name = name, .path = name, .pinned = true}).ok());
    ASSERT_TRUE(pin(name).ok());
  }
  EXPECT_EQ(engine_->check(), "");
}

}  // namespace
}  // namespace valora::serving
