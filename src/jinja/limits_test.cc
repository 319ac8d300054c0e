// Hostile templates and data cause an error within little time and memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/testing/render.h"

namespace valora::jinja {
namespace {

using testing::failure;
using ::testing::HasSubstr;

// The failure of a template limited to a tenth of the steps, to save time: the code is the same.
std::string soon(std::string_view source) {
  return failure(source, Json::object(), kMaxSteps / 10);
}

std::string repeat(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(JinjaLimits, StringSizeIsCheckedBeforeAllocation) {
  for (const char* source :
       {"{{ 'a' * 10 ** 9 }}", "{{ 'a' * 9223372036854775807 }}", "{{ 'a'.ljust(10 ** 12) }}",
        "{{ 'a'.zfill(10 ** 12) }}", "{{ 'a'|center(10 ** 12) }}",
        "{% set x = 'a' * 5000000 %}{{ x.replace('a', x) }}",
        "{% set x = 'a' * 5000000 %}{{ x.replace('', x) }}",
        "{% set x = 'a' * 5000000 %}{{ [x, x, x, x, x]|join(x) }}",
        "{% set x = 'a' * 5000000 %}{{ x ~ x ~ x ~ x }}",
        "{% set x = 'a' * 5000000 %}{{ [x, x, x, x] }}",
        "{% set x = 'a' * 5000000 %}{{ [x, x, x, x]|tojson }}",
        "{% set x = 'a\\n' * 50000 %}{{ x|indent(1000) }}",
        "{{ '%s%s%s%s'|format('a' * 5000000, 'a' * 5000000, 'a' * 5000000, 'a' * 5000000) }}",
        "{% set x = 'a' * 8000000 %}{% set y = x + x %}{{ y + y }}"})
    EXPECT_THAT(failure(source), HasSubstr("MiB")) << source;
  EXPECT_THAT(failure("{% for i in range(20) %}{{ 'a' * 1000000 }}{% endfor %}"),
              HasSubstr("writes more than 16 MiB"));
}

TEST(JinjaLimits, ListSizeIsCheckedBeforeAllocation) {
  EXPECT_THAT(soon("{{ [1] * 10 ** 9 }}"), HasSubstr("steps"));
  EXPECT_THAT(soon("{{ [1, 2] * 9223372036854775807 }}"), HasSubstr("steps"));
  EXPECT_THAT(soon("{{ range(10 ** 9) }}"), HasSubstr("Range too big"));
  EXPECT_THAT(soon("{{ range(-9223372036854775807, 9223372036854775807, 1) }}"),
              HasSubstr("Range too big"));
  EXPECT_THAT(soon("{% set x = 'a,' * 5000000 %}{{ x.split(',')|length }}"), HasSubstr("steps"));
  EXPECT_THAT(soon("{{ [1]|batch(10 ** 9, 0) }}"), HasSubstr("is not supported"));
  EXPECT_THAT(soon("{{ [1]|slice(10 ** 9, 0) }}"), HasSubstr("is not supported"));
}

TEST(JinjaLimits, WorkIsBounded) {
  const std::string loop = "{% for a in range(100000) %}";
  EXPECT_THAT(soon(loop + loop + "{% endfor %}{% endfor %}"), HasSubstr("steps"));
  EXPECT_THAT(soon("{% set x = 'ab' * 5000000 %}" + loop + "{{ 'abc' in x }}{% endfor %}"),
              HasSubstr("steps"));
  EXPECT_THAT(soon("{% set x = range(100000)|list %}" + loop + "{{ x == x }}{% endfor %}"),
              HasSubstr("steps"));
  EXPECT_THAT(soon("{% set x = 'a' * 1000000 %}" + loop + "{% set y = x + 'b' %}{% endfor %}"),
              HasSubstr("steps"));
  EXPECT_THAT(soon("{% set x = 'é' * 1000000 %}" + loop + "{% set y = x[99999] %}{% endfor %}"),
              HasSubstr("steps"));
}

TEST(JinjaLimits, RenderingMayUseAllSteps) {
  const std::string loop = "{% for a in range(100000) %}{% endfor %}";
  EXPECT_EQ(failure(repeat(loop, 8)), "");
  EXPECT_THAT(soon(repeat(loop, 8)), HasSubstr("steps"));
}

TEST(JinjaLimits, DepthIsBounded) {
  EXPECT_THAT(failure("{{ " + repeat("(", 100000) + "1" + repeat(")", 100000) + " }}"),
              HasSubstr("nests deeper"));
  EXPECT_THAT(failure("{{ " + repeat("-", 100000) + "1 }}"), HasSubstr("nests deeper"));
  EXPECT_THAT(failure("{{ " + repeat("not ", 100000) + "1 }}"), HasSubstr("nests deeper"));
  EXPECT_THAT(failure("{{ 1" + repeat(" + 1", 100000) + " }}"), HasSubstr("nests deeper"));
  EXPECT_THAT(failure("{{ x" + repeat(".y", 100000) + " }}"), HasSubstr("nests deeper"));
  EXPECT_THAT(failure("{{ x" + repeat("|upper", 100000) + " }}"), HasSubstr("nests deeper"));
  EXPECT_THAT(failure("{{ " + repeat("[", 100000) + repeat("]", 100000) + " }}"),
              HasSubstr("nests deeper"));
  EXPECT_THAT(failure(repeat("{% if 1 %}", 10000) + repeat("{% endif %}", 10000)),
              HasSubstr("nest deeper"));
  EXPECT_THAT(
      failure("{% for " + repeat("(", 10000) + "x" + repeat(")", 10000) + " in y %}{% endfor %}"),
      HasSubstr("nest too deep"));
  EXPECT_THAT(failure("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), HasSubstr("nest deeper"));
  EXPECT_THAT(failure("{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = "
                      "[ns.x] %}{% endfor %}"),
              HasSubstr("nests values deeper"));
  EXPECT_EQ(failure(repeat("{% if 0 %}{% elif 1 %}", 1) + "{% endif %}{{ 1" +
                    repeat(" ~ 1", 10000) + " }}"),
            "");
}

TEST(JinjaLimits, CyclicNamespacesAreFreed) {
  EXPECT_EQ(failure("{% set ns = namespace() %}{% set ns.me = ns %}{% set ns.list = [ns] %}{% for "
                    "x in [ns] %}{% set "
                    "ns.loop = loop %}{% endfor %}"
                    "{% macro m() %}{% endmacro %}{% set ns.m = m %}"),
            "");
}

TEST(JinjaLimits, LoopVariableOutlivesLoop) {
  EXPECT_EQ(
      *testing::render(
          "{% set ns = namespace() %}{% for x in [1, 2, 3] if x %}{% set ns.l = loop %}{% break "
          "%}{% endfor %}{{ ns.l.index }}{{ ns.l.last }}"),
      "1False");
}

TEST(JinjaLimits, MacroCalledAfterItsLoopIsAnError) {
  EXPECT_THAT(failure("{% set ns = namespace() %}{% for x in [1] %}{% macro m() %}{{ x }}{% "
                      "endmacro %}{% set ns.m = m "
                      "%}{% endfor %}{{ ns.m() }}"),
              HasSubstr("is called outside the block that defines it"));
}

TEST(JinjaLimits, TheSourceIsBounded) {
  EXPECT_THAT(failure(std::string((1 << 20) + 1, 'a')), HasSubstr("larger than 1024 KiB"));
  EXPECT_EQ(failure("{% raw %}" + repeat("{%", 400000) + "{% endraw %}"), "");
}

TEST(JinjaLimits, IntegersStayWithin64Bits) {
  for (const char* source :
       {"{{ 9223372036854775807 + 1 }}", "{{ 10 ** 40 }}", "{{ -9223372036854775807 - 2 }}",
        "{{ 9223372036854775807 * 2 }}", "{{ (-9223372036854775807 - 1) // -1 }}",
        "{{ -(-9223372036854775807 - 1) }}", "{{ 1e300|int }}", "{{ ('9' * 30)|int }}"})
    EXPECT_THAT(failure(source), HasSubstr("64 bits")) << source;
  EXPECT_EQ(*testing::render(
                "{{ (-9223372036854775807 - 1) % -1 }} {{ [1, 2][9223372036854775807:] }} {{ [1, "
                "2][::-9223372036854775807] }}"),
            "0 [] [2]");
}

}  // namespace
}  // namespace valora::jinja
