#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/testing/render.h"

namespace valora::jinja {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refusal(std::string_view source) {
  const auto parsed = parse(source);
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.error().code, ErrorCode::kUnprocessable);
  return parsed.error().message;
}

TEST(JinjaRefusals, NameUnsupportedFeatureAndLine) {
  const std::pair<std::string, std::string> cases[] = {
      {"a\n\n{{ x | xmlattr }}", "line 3: the filter 'xmlattr' is not supported"},
      {"{% filter nope %}{% endfilter %}", "line 1: the filter 'nope' is not supported"},
      {"{% if no %}\n{{ x is wibble }}{% endif %}", "line 2: the test 'wibble' is not supported"},
      {"{{ x | map('wibble') }}", "line 1: the filter 'wibble' is not supported"},
      {"{{ x | selectattr('a', 'wibble') }}", "line 1: the test 'wibble' is not supported"},
      {"{% include 'x' %}", "line 1: the tag 'include' is not supported"},
      {"{% import 'x' as y %}", "line 1: the tag 'import' is not supported"},
      {"{% from 'x' import y %}", "line 1: the tag 'from' is not supported"},
      {"{% extends 'x' %}", "line 1: the tag 'extends' is not supported"},
      {"{% block x %}{% endblock %}", "line 1: the tag 'block' is not supported"},
      {"{% call m() %}{% endcall %}", "line 1: the tag 'call' is not supported"},
      {"{% wibble %}", "line 1: unexpected or unknown tag 'wibble'"},
      {"{% for x in y recursive %}{% endfor %}", "line 1: recursive loops are not supported"},
      {"{{ cycler(1) }}", "line 1: 'cycler' is not supported"},
      {"{% macro m() %}{{ caller() }}{% endmacro %}", "line 1: 'caller' is not supported"},
      {"{{ s.encode('utf-8') }}", "line 1: the method 'encode' is not supported"},
      {"{{ x[1, 2] }}", "line 1: a subscript with commas is not supported"},
      {"{% break %}", "line 1: 'break' is outside a loop"},
      {"{% for x in y %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}",
       "line 1: 'continue' is outside a loop"},
      {"{{ 99999999999999999999 }}", "line 1: the integer 99999999999999999999 is too large"}};
  for (const auto& [source, message] : cases)
    EXPECT_THAT(refusal(source), StartsWith(message)) << source;
}

TEST(JinjaRefusals, MalformedTemplatesAreRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {"{{ x", "a tag is not closed"},
      {"{% if x %}", "expected 'endif'"},
      {"{# x", "a comment is not closed"},
      {"{% raw %}x", "a raw block is not closed"},
      {"{{ 'x }}", "a string is not closed"},
      {"{{ (1 }}", "expected ')'"},
      {"{{ (1] }}", "expected ')'"},
      {"{{ 1 ) }}", "unexpected ')'"},
      {"{{ }}", "expected an expression"},
      {"{{ 1 2 }}", "expected '}}'"},
      {"{{ a ? b }}", "unexpected character '?'"},
      {"{% endif %}", "unexpected or unknown tag 'endif'"},
      {"{% for %}", "expected a name"},
      {"{% set true = 1 %}", "can't assign to 'true'"},
      {"{% for loop in x %}{% endfor %}", "can't assign to the loop variable"},
      {"{{ f(a=1, 2) }}", "an argument without a name follows"},
      {"{% macro m(a=1, b) %}{% endmacro %}", "without a default follows"},
      {"{{ 'a\\ud800' }}", "an escape names no character"},
      {"{{ x is a is b }}", "is not supported"},
      {"\xff", "not UTF-8"},
      {"{{ f(a=1, a=2) }}", "given twice"},
      {"{%", "a tag is not closed"},
      {"{{ x[] }}", "a subscript is empty"},
      {"{% set a, b %}{% endset %}", "fills one variable"},
      {"{{ 012 }}", "a number begins with 0"}};
  for (const auto& [source, message] : cases)
    EXPECT_THAT(refusal(source), HasSubstr(message)) << source;
}

TEST(JinjaRefusals, ErrorsNameLine) {
  EXPECT_EQ(testing::failure("a\n{{ nope.x }}"),
            "the chat template failed at line 2: 'nope' is undefined");
  EXPECT_EQ(testing::failure("{% set x = {} %}\n\n{{ x.y.z }}"),
            "the chat template failed at line 3: 'dict object' has no attribute 'y'");
  EXPECT_EQ(testing::failure("\n{{ raise_exception('Only ' ~ 2 ~ ' turns!') }}"), "Only 2 turns!");
  EXPECT_EQ(testing::failure("{% set x = [] %}{{ x.append(1) }}"),
            "the chat template failed at line 1: access to attribute 'append' of 'list' object is "
            "unsafe.");
}

TEST(JinjaRefusals, ValuesWithoutFixedTextAreRefused) {
  EXPECT_THAT(testing::failure("{{ [1]|select }}"), HasSubstr("an iterator has no fixed text"));
  EXPECT_THAT(testing::failure("{{ range }}"), HasSubstr("has no fixed text"));
  EXPECT_THAT(testing::failure("{{ [''.upper] }}"), HasSubstr("has no fixed text"));
  EXPECT_THAT(testing::failure("{{ namespace() }}"), HasSubstr("has no fixed text"));
}

}  // namespace
}  // namespace valora::jinja
