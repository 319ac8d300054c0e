// Boxes as a language model writes them (VaLoRA Appendix B, figure 25), and read back from what it
// wrote. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "generator/data/task.h"

namespace valora::generator {

// With labels: "<ref>car</ref><box>(12,30),(55,61)</box><box>…</box>", boxes of one label together,
// in the order given; without: "[12,30,55,61]", several side by side. Coordinates in units of 1 /
// scale, rounded, so that x0 < x1, y0 < y1.
std::string write_boxes(const std::vector<LabelledBox>& boxes, const BoxFormat& format);
// What can be read of an answer, in its order; text around is passed over, boxes without an area
// are left out, corners outside the picture are moved to its edge. Either form is read, whatever
// the format; a box's label is that of the <ref> before it, if any.
std::vector<LabelledBox> read_boxes(const std::string& answer, const BoxFormat& format);
double overlap(const Box& a, const Box& b);  // intersection over union

}  // namespace valora::generator
