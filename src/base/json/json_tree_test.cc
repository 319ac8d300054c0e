// Trees are built in linear time, and are those of the library.
#include "base/json/json_tree.h"

#include <gtest/gtest.h>

#include <map>

#include "base/json/json.h"
#include "base/json/parse_ordered.h"
#include "base/testing/allocation_faults.h"

namespace valora {
namespace {

uint64_t visits = 0;  // of members of objects, by iterators

template <typename Base>
struct CountingIterator : Base {
  CountingIterator() = default;
  CountingIterator(Base base) : Base(base) {}  // NOLINT(*-explicit-*): as the map's own
  CountingIterator& operator++() {
    ++visits;
    Base::operator++();
    return *this;
  }
};

template <typename Key, typename Value, typename... Rest>
struct CountingMap : std::map<Key, Value, Rest...> {
  using std::map<Key, Value, Rest...>::map;
  using iterator = CountingIterator<typename std::map<Key, Value, Rest...>::iterator>;
};

using CountedJson = nlohmann::basic_json<CountingMap>;

// {"0":{"a":[]},"1":{"a":[]},…}
std::string nested_members(int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ",\"" : "\"") + std::to_string(i) + R"(":{"a":[]})";
  return text + "}";
}

TEST(JsonTree, VisitsNoEarlierMembers) {
  constexpr int kMembers = 2000;
  const std::string text = nested_members(kMembers);
  visits = 0;
  JsonTree<CountedJson> tree;
  ASSERT_TRUE(CountedJson::sax_parse(text, &tree));
  EXPECT_EQ(visits, 0u);
  EXPECT_EQ(tree.take().size(), size_t{kMembers});
  // What this test is about: the library's builder with a callback.
  const auto any = [](int, CountedJson::parse_event_t, CountedJson&) { return true; };
  ASSERT_TRUE(CountedJson::parse(text, any).is_object());
  EXPECT_GT(visits, uint64_t{kMembers} * kMembers / 2);
}

constexpr const char* kTexts[] = {
    "1",
    "-1",
    "1.5",
    "null",
    "true",
    R"("é")",
    "[]",
    "{}",
    R"([1,[2,[]],{"a":[{}]},"x",null])",
    R"({"b":{"c":[1,{"d":false}]},"a":18446744073709551615})",
    R"({"a":1,"b":{"x":1},"a":{"y":[2]}})",
    R"({"":{"":{"":[]}}})",
};

TEST(JsonTree, TreesAreThoseOfTheLibrary) {
  for (const char* text : kTexts) {
    JsonTree<Json> tree;
    ASSERT_TRUE(Json::sax_parse(text, &tree)) << text;
    EXPECT_EQ(tree.take(), Json::parse(text)) << text;
    EXPECT_EQ(parse_ordered(text).dump(), OrderedJson::parse(text).dump()) << text;
  }
  for (const char* text : {"", "[", "{\"a\":1", "[1,]", "{\"a\"}", "1 2", "[1e999]", "\"\xff\""}) {
    JsonTree<Json> tree;
    EXPECT_FALSE(Json::sax_parse(text, &tree)) << text;
    EXPECT_NE(tree.error(), "") << text;
    EXPECT_TRUE(parse_ordered(text).is_discarded()) << text;
  }
}

TEST(JsonTree, FindsTheFirstRepeatedKey) {
  const auto repeated = [](const char* text) {
    JsonTree<Json> tree;
    EXPECT_TRUE(Json::sax_parse(text, &tree));
    return tree.duplicate().value_or("none");
  };
  EXPECT_EQ(repeated(R"({"a":1,"b":{"a":1,"c":2,"c":3},"a":2})"), "c");
  EXPECT_EQ(repeated(R"({"a":{"b":1},"b":{"a":1}})"), "none");
}

// With the library, half of the square of this number of comparisons.
TEST(ParseOrdered, ObjectOfManyKeysKeepsTheirOrder) {
  constexpr int kKeys = 400'000;
  std::string text = "{";
  for (int i = 0; i < kKeys; ++i) text += "\"" + std::to_string(i * 7919LL % kKeys) + "\":[],";
  text += R"("3":1,"new":2})";
  const OrderedJson tree = parse_ordered(text);
  ASSERT_EQ(tree.size(), size_t{kKeys + 1});
  size_t place = 0;
  for (const auto& [key, value] : tree.get_ref<const OrderedJson::object_t&>()) {
    if (place == size_t{kKeys}) {
      EXPECT_EQ(key, "new");
    } else {
      ASSERT_EQ(key, std::to_string(place * 7919 % kKeys));
      ASSERT_EQ(value, key == "3" ? OrderedJson(1) : OrderedJson::array());
    }
    ++place;
  }
}

TEST(JsonTree, LackOfMemoryThrows) {
  std::string text = "{";
  for (int i = 0; i < 30; ++i) text += "\"a key of some length " + std::to_string(i) + R"(":[{}],)";
  text += R"("last":0})";
  for (uint64_t n = 0;; ++n) {
    bool thrown = false, struck = false;
    {
      const testing::AllocationFault fault(n, true);
      try {
        (void)parse_ordered(text);
        (void)parse_json(text, "x", {.unique_keys = true});
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
      struck = fault.struck();
    }
    ASSERT_EQ(thrown, struck) << n;
    if (struck) continue;
    EXPECT_GT(n, 100u);
    break;
  }
}

}  // namespace
}  // namespace valora
