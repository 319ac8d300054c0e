// One labelled example of a task, as its data file or its teacher gives it. Torch-free.
#pragma once

#include <string>
#include <vector>

namespace valora::generator {

// Shares of the picture's width and height, 0 <= x0 < x1 <= 1 and the same for y.
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
  std::vector<std::string>
      files;  // absolute paths: one of an image or a video file, several of a video's frames
};

struct Sample {
  std::string origin;  // for errors: "train.jsonl:17", "instances.json: image 42", or the picture's
                       // own path
  std::vector<Medium> media;
  std::string question;  // asked with the media; never empty once a task's template was applied
  std::string answer;    // what the language model is trained to say
  std::vector<std::string>
      references;  // what else is right: a VQA sample's ten answers, a picture's captions
  std::vector<std::string>
      labels;  // of a classification: one, or several where the task is multi-label
  std::vector<LabelledBox> boxes;  // of detection, grounding and referring expressions
};

}  // namespace valora::generator
