#include "report/html.h"

#include <gmock/gmock.h>

#include "report/style.h"
#include "report/testing/markup.h"

namespace valora::report {
namespace {

using ::testing::HasSubstr;
using ::valora::testing::expect_well_formed;

constexpr const char* kHostile = "<b onload=\"x\">&'\x01\xFF";
constexpr const char* kEscaped = "&lt;b onload=&quot;x&quot;&gt;&amp;&#39;\uFFFD\uFFFD";

TEST(Html, EscapesPlainText) {
  EXPECT_EQ(escaped(kHostile), kEscaped);
  EXPECT_EQ(escaped("a\nb\tc é"), "a\nb\tc é");
  const std::string expected = kEscaped;
  const Tile tile{kHostile, kHostile};
  EXPECT_EQ(tiles({&tile, 1}), "<div class=\"tiles\">\n<div class=\"tile\"><b>" + expected +
                                   "</b><span>" + expected + "</span></div>\n</div>\n");
  EXPECT_EQ(number_cell(kHostile), "<td class=\"n\">" + expected + "</td>");
  EXPECT_THAT(folded(kHostile, kHostile), HasSubstr("<pre>" + expected + "</pre>"));
  EXPECT_THAT(figure(kHostile, kHostile, "<svg></svg>"),
              HasSubstr("<b>" + expected + "</b> " + expected + "</figcaption>"));
  EXPECT_THAT(page(kHostile, "", ""), HasSubstr("<title>" + expected + "</title>"));
}

TEST(Html, TablesKeepTheMarkupOfTheirCells) {
  const Column columns[] = {{"Name"}, {"Count", true}};
  const std::string row =
      "<tr>" + row_name("<i>a</i>") + cell("<b>1</b>") + cell("2", "wide") + "</tr>\n";
  EXPECT_EQ(table(columns, row),
            "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Name</th>"
            "<th scope=\"col\" class=\"n\">Count</th></tr></thead>\n<tbody>\n"
            "<tr><th scope=\"row\"><i>a</i></th><td><b>1</b></td><td class=\"wide\">2</td></tr>\n"
            "</tbody></table></div>\n");
}

TEST(Html, PageIsCompleteDocumentWithStyle) {
  const std::string css = std::string(kPageStyle) + kChartStyle;
  const std::string html = page("Load", css, table({}, "") + folded("Options", "{}"));
  expect_well_formed(html);
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>\n"));
  EXPECT_THAT(html, HasSubstr("<style>\n" + css + "</style>"));
  for (size_t series = 0; series < kColours; ++series)
    EXPECT_THAT(css, HasSubstr("." + colour_class(series) + " { --c: #"));
  EXPECT_EQ(colour_class(kColours), "c0");
}

}  // namespace
}  // namespace valora::report
