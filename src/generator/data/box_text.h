// Writes boxes as text for a language model (VaLoRA Appendix B, figure 25) and parses them from its
// answers. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "generator/data/task.h"

namespace valora::generator {

// With labels: "<ref>car</ref><box>(12,30),(55,61)</box><box>…</box>", boxes with equal labels
// grouped, otherwise in the given order. Without: "[12,30,55,61]", one after the other. Coordinates
// are in units of 1 / scale, rounded so that x0 < x1 and y0 < y1.
std::string write_boxes(const std::vector<LabelledBox>& boxes, const BoxFormat& format);
// The boxes in an answer, in order. Other text is ignored. As in serving, boxes without area, or
// cut off by the end of the answer, are dropped, and corners outside the picture are moved to its
// edge. Both forms are parsed, whatever the format. A box's label is that of the preceding <ref>,
// if any.
std::vector<LabelledBox> read_boxes(const std::string& answer, const BoxFormat& format);
// The boxes of an answer of kind AnswerConstraint::Kind::kBoxes, as corners and with its sizes.
Result<std::vector<LabelledBox>> read_box_answer(const std::string& answer);
double overlap(const Box& a, const Box& b);  // intersection over union

}  // namespace valora::generator
