// Writes boxes as text for a language model (VaLoRA Appendix B, figure 25) and parses them from its
// answers. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "generator/data/task.h"

namespace valora::generator {

// With labels: "<ref>car</ref><box>(12,30),(55,61)</box><box>…</box>", boxes of equal label
// together, in the given order. Without: "[12,30,55,61]", one after the other. Coordinates are in
// units of 1 / scale, rounded so that x0 < x1 and y0 < y1.
std::string write_boxes(const std::vector<LabelledBox>& boxes, const BoxFormat& format);
// The boxes that can be read from an answer, in its order. Other text is ignored, boxes without an
// area and one that the end of the answer cuts are dropped, as in serving, and corners outside the
// picture are moved to its edge. Both forms are read,
// whatever the format. A box's label is that of the <ref> before it, if any.
std::vector<LabelledBox> read_boxes(const std::string& answer, const BoxFormat& format);
double overlap(const Box& a, const Box& b);  // intersection over union

}  // namespace valora::generator
