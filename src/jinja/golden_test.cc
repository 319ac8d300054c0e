// Compares every construct with jinja2's output (testdata/golden.json, written by
// tests/parity/make_jinja_golden.py).
#include <gtest/gtest.h>

#include "jinja/testing/render.h"

namespace valora::jinja {
namespace {

TEST(JinjaGolden, EveryConstructRendersAsInJinja2) {
  const auto golden = read_json_file(VALORA_JINJA_TESTDATA "/golden.json");
  ASSERT_TRUE(golden.ok()) << golden.error().message;
  size_t compared = 0;
  for (const Json& expected : (*golden)["cases"]) {
    const std::string source = expected["template"];
    SCOPED_TRACE(expected["group"].get<std::string>() + ": " + source);
    const auto rendered = testing::render(source, (*golden)["variables"]);
    if (expected.contains("fails")) {
      EXPECT_FALSE(rendered.ok()) << *rendered;
    } else if (rendered.ok()) {
      EXPECT_EQ(*rendered, expected["rendered"].get<std::string>());
    } else {
      ADD_FAILURE() << rendered.error().message;
    }
    ++compared;
  }
  EXPECT_GT(compared, 150u);
}

}  // namespace
}  // namespace valora::jinja
