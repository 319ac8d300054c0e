// A COCO file of boxes: {"images", "annotations", "categories"}.
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "cli/rows/run_output.h"

namespace valora::cli {

// From rows {"name", "boxes": [{"label", "box": [x0, y0, x1, y1]}], "size": [width, height]}, or
// {"name", "error"}. Boxes become [x, y, width, height] in pixels of the picture. Images are in the
// order of their names; those with errors are in "errors" instead.
Result<OrderedJson> coco_of(std::vector<OrderedJson> rows, const CocoNames& names);

}  // namespace valora::cli
