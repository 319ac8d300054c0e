#include "adapters/registry.h"

#include <gtest/gtest.h>

#include "adapters/testing/adapter_folder.h"

namespace valora::adapters {
namespace {

std::shared_ptr<const AdapterSpec> spec_at(const std::string& path) {
  auto spec = std::make_shared<AdapterSpec>();
  spec->path = path;
  return spec;
}

Result<AdapterEntry> add(AdapterRegistry& registry, const std::string& name,
                         std::shared_ptr<const AdapterSpec> spec, AddOptions options = {}) {
  VALORA_TRY(prepared, registry.prepare(name, std::move(spec), options));
  AdapterEntry entry = AdapterRegistry::entry_of(prepared);
  registry.add(std::move(prepared));
  return entry;
}

TEST(AdapterRegistry, AddedAdaptersAreFoundAndListed) {
  AdapterRegistry registry;
  const auto b = add(registry, "b", spec_at("/b"), {.pinned = true, .loaded_at = 17});
  const auto a = add(registry, "a", spec_at("/a"));
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->id, b->id);
  EXPECT_EQ(registry.find("b")->path, "/b");
  EXPECT_TRUE(registry.find("b")->pinned);
  EXPECT_EQ(registry.find("b")->loaded_at, 17);
  EXPECT_EQ(registry.find(a->id)->name, "a");
  EXPECT_EQ(registry.find("c"), nullptr);
  EXPECT_EQ(registry.find(AdapterId{99}), nullptr);
  const auto list = registry.list();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "a");
  EXPECT_EQ(list[1].name, "b");
}

TEST(AdapterRegistry, DescribesAdaptersWithoutHoldingTheirTensors) {
  testing::AdapterFolder folder;
  folder.add_head("score", 2);
  const auto spec = std::make_shared<const AdapterSpec>(folder.read().value());
  const std::weak_ptr<const SafeTensors> file = spec->file;
  AdapterRegistry registry;
  const auto entry = add(registry, "a", spec);
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->spec->digest, spec->digest);
  EXPECT_TRUE(entry->spec->targets.empty());
  EXPECT_EQ(entry->spec->heads[0].labels.size(), 2u);
  EXPECT_TRUE(entry->spec->heads[0].weight.bytes.empty());
  EXPECT_EQ(file.use_count(), 1);
}

TEST(AdapterRegistry, TakenNameRequiresReplace) {
  AdapterRegistry registry;
  const auto first = add(registry, "a", spec_at("/1"));
  const auto refused = add(registry, "a", spec_at("/2"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(registry.find("a")->path, "/1");
  const auto second = add(registry, "a", spec_at("/2"), {.replace = true});
  ASSERT_TRUE(second.ok());
  EXPECT_NE(second->id, first->id);
  EXPECT_GT(second->generation, first->generation);
  EXPECT_EQ(registry.find(first->id), nullptr);
  EXPECT_EQ(registry.find("a")->path, "/2");
  EXPECT_EQ(registry.size(), 1u);
}

TEST(AdapterRegistry, IdsAndGenerationsAreNeverReused) {
  AdapterRegistry registry;
  const auto first = add(registry, "a", spec_at("/1"));
  const auto removed = registry.remove("a");
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(removed->id, first->id);
  EXPECT_EQ(registry.size(), 0u);
  EXPECT_GT(registry.generation(), first->generation);
  const auto second = add(registry, "a", spec_at("/1"));
  EXPECT_NE(second->id, first->id);
  EXPECT_GT(second->generation, first->generation);
  EXPECT_EQ(registry.generation(), second->generation);
  EXPECT_EQ(registry.remove("b").error().code, ErrorCode::kNotFound);
}

TEST(AdapterRegistry, SwapRequiresExpectedGeneration) {
  AdapterRegistry registry;
  EXPECT_EQ(add(registry, "a", spec_at("/1"), {.expected_generation = 5}).error().code,
            ErrorCode::kConflict);
  const auto first = add(registry, "a", spec_at("/1"), {.expected_generation = 0});
  ASSERT_TRUE(first.ok());
  const auto stale = add(registry, "a", spec_at("/2"), {.replace = true, .expected_generation = 0});
  EXPECT_EQ(stale.error().code, ErrorCode::kConflict);
  const auto second = add(registry, "a", spec_at("/2"),
                          {.replace = true, .expected_generation = first->generation});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(registry.remove("a", first->generation).error().code, ErrorCode::kConflict);
  EXPECT_NE(registry.find("a"), nullptr);
  EXPECT_TRUE(registry.remove("a", second->generation).ok());
}

TEST(AdapterRegistry, RefusesNamesThatWouldBreakUrlsLogsOrMetrics) {
  AdapterRegistry registry;
  for (const std::string& name :
       {std::string(), std::string("a,b"), std::string("a\nb"), std::string("a\0b", 3),
        std::string("a\"b"), std::string(257, 'x'), std::string("a\xE2\x80\xAE"),
        std::string("a\xC2\x9B"), std::string("a\xFF"), std::string("a\u200B"),
        std::string("a\u2060b")})
    EXPECT_EQ(add(registry, name, spec_at("/")).error().code, ErrorCode::kInvalidArgument) << name;
  for (const std::string& name :
       {std::string("org/name-1.0"), std::string("é"), std::string(256, 'x')})
    EXPECT_TRUE(add(registry, name, spec_at("/")).ok()) << name;
}

TEST(AdapterRegistry, PreparedAdapterIsInvisibleUntilAdded) {
  AdapterRegistry registry;
  ASSERT_TRUE(add(registry, "a", spec_at("/1")).ok());
  auto prepared = registry.prepare("a", spec_at("/2"), {.replace = true});
  ASSERT_TRUE(prepared.ok());
  EXPECT_EQ(registry.find("a")->path, "/1");
  registry.add(std::move(prepared).value());
  EXPECT_EQ(registry.find("a")->path, "/2");
  EXPECT_EQ(registry.size(), 1u);
}

}  // namespace
}  // namespace valora::adapters
