// The parts of COCO's detection JSON that boxes need. Torch-free.
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
  int width = 0, height = 0;  // pixels; 0: the file does not say
};

struct CocoAnnotation {
  int64_t id = 0, image = 0, category = 0;
  std::array<double, 4> box{};  // x, y, width, height in pixels
  bool crowd = false;
};

struct CocoFile {
  std::vector<CocoImage> images;
  std::vector<CocoAnnotation> annotations;
  std::unordered_map<int64_t, std::string> categories;  // names
};

// Element by element: outlines and whatever else lies in the file is parsed but never kept. Errors
// name the image, annotation or category, or the place in the text, but not the file. At most 2
// GiB.
Result<CocoFile> read_coco_file(const std::string& path);

}  // namespace valora::generator
