#include "base/text/visible_text.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "base/log/log.h"

namespace valora {
namespace {

TEST(VisibleText, FindsHiddenCharacters) {
  for (const char* text : {"", "plain", "caf\xC3\xA9", "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D",
                           "\xF0\x9F\x98\x80", "a\xE2\x80\x8D"})
    EXPECT_FALSE(has_hidden_characters(text)) << text;
  for (const std::string_view text :
       {std::string_view("a\nb"), std::string_view("\x1B[31m"), std::string_view("a\0b", 3),
        std::string_view("\x7F"), std::string_view("\xC2\x9B"), std::string_view("\xE2\x80\xAE"),
        std::string_view("\xE2\x81\xA6"), std::string_view("\xE2\x80\xA8"),
        std::string_view("\xEF\xBB\xBF"), std::string_view("\xD8\x9C"), std::string_view("\xFF"),
        std::string_view("\xC0\xAF"), std::string_view("\xED\xA0\x80"),
        std::string_view("\xE2\x80")})
    EXPECT_TRUE(has_hidden_characters(text)) << visible(text);
}

TEST(VisibleText, FindsInvisibleCharacters) {
  for (const char* text : {"", "plain", "caf\xC3\xA9", "\xF0\x9F\x98\x80", "a b"})
    EXPECT_FALSE(has_invisible_characters(text)) << text;
  for (const char* text : {"a\u200Bb", "a\u200D", "\u2060", "a\u00AD", "\uFEFF", "a\uFE0F",
                           "\u3164", "a\U000E0041", "\u034F"})
    EXPECT_TRUE(has_invisible_characters(text)) << text;
}

TEST(VisibleText, EscapesHiddenCharacters) {
  EXPECT_EQ(visible("caf\xC3\xA9\t1"), "caf\xC3\xA9\t1");
  EXPECT_EQ(visible("a\r\n\x1B[31m\x7F"), "a\\r\\n\\x1b[31m\\x7f");
  EXPECT_EQ(visible("x\xE2\x80\xAEy\xFFz"), "x\\u{202e}y\\xffz");
}

TEST(Log, EscapesControlCharacters) {
  std::ostringstream out;
  spdlog::sinks::ostream_sink_mt sink(out);
  sink.set_formatter(log_formatter());
  sink.log({"valora", spdlog::level::warn, "adapter a\x1B[2J: key \"\xE2\x80\xAE\"\nforged line"});
  EXPECT_NE(out.str().find("adapter a\\x1b[2J: key \"\\u{202e}\"\\nforged line\n"),
            std::string::npos)
      << out.str();
}

}  // namespace
}  // namespace valora
