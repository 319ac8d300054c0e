// Checks of HTML and SVG, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace valora::testing {

inline size_t count(const std::string& text, const std::string& words) {
  size_t found = 0;
  for (size_t at = text.find(words); at != text.npos; at = text.find(words, at + words.size()))
    ++found;
  return found;
}

// Expects elements to be closed in the reverse order of opening.
inline void expect_well_formed(const std::string& html) {
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != html.npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    ASSERT_NE(end, html.npos);
    const std::string tag = html.substr(at + 1, html.find_first_of(" >", at) - at - 1);
    if (tag[0] == '!' || tag == "meta" || html[end - 1] == '/') continue;
    if (tag[0] != '/') {
      open.push_back(tag);
      continue;
    }
    ASSERT_FALSE(open.empty()) << tag;
    ASSERT_EQ("/" + open.back(), tag) << html.substr(at > 100 ? at - 100 : 0, 200);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

}  // namespace valora::testing
