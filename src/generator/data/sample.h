// One example of a task, from its data file or its teacher. Torch-free.
#pragma once

#include <string>
#include <vector>

namespace valora::generator {

// Shares of the picture's width and height: 0 <= x0 < x1 <= 1, and the same for y.
struct Box {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

struct LabelledBox {
  std::string label;
  Box box;
};

struct Medium {
  enum class Kind { kImage, kVideo };
  Kind kind = Kind::kImage;
  // Absolute paths: one image or video file, or several frames of a video.
  std::vector<std::string> files;
};

struct Sample {
  // For errors: "train.jsonl:17", "instances.json: image 42", or the picture's path.
  std::string origin;
  std::vector<Medium> media;
  std::string question;  // asked with the media; not empty after apply_templates
  std::string answer;    // the language model's target
  // Other accepted answers: a VQA sample's ten answers, a picture's captions.
  std::vector<std::string> references;
  // Labels of a classification: one, or several for a multi-label task.
  std::vector<std::string> labels;
  std::vector<LabelledBox> boxes;  // for detection, grounding and referring expressions
};

}  // namespace valora::generator
