// Image files for targets that read training data, and the invariants of every sample that is read.
#pragma once

#include <filesystem>

#include "check.h"
#include "generator/data/task.h"
#include "temp_folder.h"

namespace valora::fuzz {

// a.png has a header for 10 x 8 pixels; b.png is not an image.
inline const testing::TempDir& data_folder() {
  static const testing::TempDir& dir = []() -> const testing::TempDir& {
    using namespace std::string_view_literals;
    const testing::TempDir& made = temp_folder();
    made.write("a.png",
               "\x89PNG\r\n\x1a\n\0\0\0\x0DIHDR\0\0\0\x0A\0\0\0\x08\x08\x02\0\0\0\x4F\x98\xF9\xE1"
               "\0\0\0\0IDAT\x35\xAF\x06\x1E"sv);
    made.write("b.png", "no picture");
    return made;
  }();
  return dir;
}

inline void check_sample(const generator::Sample& sample) {
  FUZZ_CHECK(!sample.origin.empty() && !sample.media.empty());
  for (const generator::Medium& medium : sample.media) {
    FUZZ_CHECK(!medium.files.empty());
    for (const std::string& file : medium.files)
      FUZZ_CHECK(std::filesystem::path(file).is_absolute() &&
                 std::filesystem::is_regular_file(file));
  }
  for (const auto& [label, box] : sample.boxes)
    FUZZ_CHECK(box.x0 >= 0 && box.x0 < box.x1 && box.x1 <= 1 && box.y0 >= 0 && box.y0 < box.y1 &&
               box.y1 <= 1);
}

}  // namespace valora::fuzz
