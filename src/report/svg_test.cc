#include "report/svg.h"

#include <gmock/gmock.h>

#include "report/testing/markup.h"

namespace valora::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::valora::testing::count;
using ::valora::testing::expect_well_formed;

TEST(Svg, DrawsItsShapesInOrder) {
  Svg svg;
  svg.grid_line(40, 200, 12, "100");
  svg.bar("band", 50, 10, 20.25, 80);
  svg.line("kept c0", 1, 2, 3, 4);
  svg.circle("failed", 5, 6, 8);
  svg.series_label("name c1", 210, 30, "digits", "97.0");
  EXPECT_EQ(svg.element("Accuracy", 300, 150.4),
            "<svg role=\"img\" aria-label=\"Accuracy\" width=\"300\" height=\"150\" viewBox=\"0 0 "
            "300 150\">\n"
            "<line class=\"grid\" x1=\"40.0\" y1=\"12.0\" x2=\"200.0\" y2=\"12.0\"/>\n"
            "<text class=\"axis\" x=\"34.0\" y=\"16.0\">100</text>\n"
            "<rect class=\"band\" x=\"50.0\" y=\"10.0\" width=\"20.2\" height=\"80.0\"/>\n"
            "<line class=\"kept c0\" x1=\"1.0\" y1=\"2.0\" x2=\"3.0\" y2=\"4.0\"/>\n"
            "<circle class=\"failed\" cx=\"5.0\" cy=\"6.0\" r=\"8\"/>\n"
            "<text class=\"name c1\" x=\"210.0\" y=\"30.0\">digits <tspan "
            "class=\"value\">97.0</tspan></text>\n"
            "</svg>\n");
}

TEST(Svg, EscapesTextsAndTitles) {
  const std::string hostile = "</svg><script>\"'";
  Svg svg;
  svg.line("a", 0, 0, 1, 1, hostile);
  svg.bar("a", 0, 0, 1, 1, hostile);
  for (const Mark mark : {Mark::kCircle, Mark::kSquare, Mark::kTriangle, Mark::kDiamond})
    svg.mark(mark, "point", 0, 0, hostile);
  svg.text("a", 0, 0, hostile);
  svg.column_label("a", 0, 0, hostile, false);
  svg.column_label("a", 0, 0, hostile, true);
  svg.series_label("a", 0, 0, hostile, hostile);
  const std::string html = svg.element(hostile, 10, 10);
  expect_well_formed(html);
  EXPECT_THAT(html, Not(HasSubstr("<script>")));
  EXPECT_EQ(count(html, "&lt;script&gt;&quot;&#39;"), 12);
  EXPECT_EQ(count(html, "<title>"), 6);
}

TEST(Svg, ScalesValuesToPixels) {
  const Scale scale{.low = 20, .high = 70, .top = 10, .height = 100};
  EXPECT_DOUBLE_EQ(scale.y(70), 10);
  EXPECT_DOUBLE_EQ(scale.y(20), 110);
  EXPECT_DOUBLE_EQ(scale.y(45), 60);
  EXPECT_DOUBLE_EQ(scale.foot(), 110);
}

TEST(SpreadLabels, SeparatesLabelsWithinHeight) {
  EXPECT_THAT(spread_labels({}, 100), ElementsAre());
  EXPECT_THAT(spread_labels({10, 40}, 100), ElementsAre(10, 40));
  EXPECT_THAT(spread_labels({10, 12, 13}, 100), ElementsAre(10, 25, 40));
  EXPECT_THAT(spread_labels({90, 95, 99}, 100), ElementsAre(70, 85, 100));
  EXPECT_THAT(spread_labels({-5}, 100), ElementsAre(0));
}

}  // namespace
}  // namespace valora::report
