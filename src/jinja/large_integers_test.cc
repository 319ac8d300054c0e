// Integers above 2^63 - 1 behave as Python's, or are faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/testing/render.h"

namespace valora::jinja {
namespace {

using testing::failure;
using ::testing::HasSubstr;
using testing::render;

const Json kData = {
    {"x", 12345678901234567890U}, {"top", UINT64_MAX}, {"y", 12345678901234567890U}};

TEST(JinjaLargeIntegers, AreWrittenAsInPython) {
  EXPECT_EQ(*render("{{ x }} {{ [x] }} {{ {'a': top}|tojson }} {{ {x: 1}|tojson }}", kData),
            "12345678901234567890 [12345678901234567890] {\"a\": 18446744073709551615} "
            "{\"12345678901234567890\": 1}");
  EXPECT_EQ(*render("{{ '%d %s %x'|format(x, top, x) }} {{ x|string }} {{ x|int }} {{ x|abs }} "
                    "{{ x|round }}",
                    kData),
            "12345678901234567890 18446744073709551615 ab54a98ceb1f0ad2 12345678901234567890 "
            "12345678901234567890 12345678901234567890 12345678901234567890");
  EXPECT_EQ(*render("{{ x|float }} {{ x / 2.0 }} {{ +x }}", kData),
            "1.2345678901234567e+19 6.172839450617284e+18 12345678901234567890");
}

TEST(JinjaLargeIntegers, AreComparedExactly) {
  EXPECT_EQ(*render("{{ x == y }} {{ x == top }} {{ x > 9223372036854775807 }} {{ top > x }} "
                    "{{ 1 < x }} {{ x == 12345678901234567890.0 }} {{ {x: 'a'}[y] }}",
                    kData),
            "True False True True True False a");
  EXPECT_EQ(*render("{{ x is integer }} {{ x is number }} {{ x is float }} {{ x is boolean }} "
                    "{{ 1 if x else 0 }} {{ [top, x, 1]|sort }}",
                    kData),
            "True True False False 1 [1, 12345678901234567890, 18446744073709551615]");
}

TEST(JinjaLargeIntegers, IntegerArithmeticIsAFault) {
  for (const char* source : {"{{ x + 1 }}", "{{ 1 - x }}", "{{ x * top }}", "{{ -x }}",
                             "{{ x // 2 }}", "{{ x is odd }}"})
    EXPECT_THAT(failure(source, kData), HasSubstr("does not fit in 64 bits")) << source;
  EXPECT_NE(failure("{{ 'ab'[x] }}{{ 'a' * x }}", kData), "");
}

}  // namespace
}  // namespace valora::jinja
