// The parts of COCO's detection JSON that box tasks need. Torch-free.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace valora::generator {

struct CocoImage {
  int64_t id = 0;
  std::string file;
  int width = 0, height = 0;  // in pixels; 0 if the file does not state the size
};

struct CocoAnnotation {
  int64_t id = 0, image = 0, category = 0;
  std::array<double, 4> box{};  // x, y, width, height in pixels
  bool crowd = false;
};

struct CocoFile {
  std::vector<CocoImage> images;
  std::vector<CocoAnnotation> annotations;
  std::unordered_map<int64_t, std::string> categories;  // id -> name
};

// Reads the file element by element; outlines and other unused values are parsed but not kept.
// Errors name the image, annotation or category, or the position in the text, but not the file. At
// most 2 GiB.
Result<CocoFile> read_coco_file(const std::string& path);

}  // namespace valora::generator
