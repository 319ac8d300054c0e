// Labels and boxes: the text that a model generates for them, and the JSON sent to the client.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "api/answer.h"
#include "api/answer_form.h"
#include "api/constraint.h"
#include "api/request.h"

namespace valora::serving {

inline bool is_shape(AnswerConstraint::Kind kind) {
  return kind == AnswerConstraint::Kind::kLabels || kind == AnswerConstraint::Kind::kBoxes;
}

// Checks that a model with this form can answer kLabels or kBoxes, and that the prompt has the
// one picture that boxes need. kInvalidArgument names the constraint's field.
Status check_shape(const AnswerConstraint& constraint, const AnswerForm& form,
                   const Prompt& prompt);

// Translates kLabels and kBoxes to a constraint on the model's text; returns others unchanged.
AnswerConstraint constraint_on_text(const AnswerConstraint& constraint, const AnswerForm& form);

// Converts the text of one answer to JSON incrementally.
class AnswerShape {
 public:
  virtual ~AnswerShape() = default;
  virtual std::string push(const std::string& text) = 0;  // the JSON that is final so far
  virtual std::string finish() = 0;                       // the rest
};

struct PictureSize {
  int width = 0, height = 0;
};

struct PictureSizes {
  PictureSize sent;  // by the client, with its orientation applied
  PictureSize seen;  // by the model; needed for a notation in its pixels
};

// {"label": "car"}, emitted at the end; null if the answer was cut off.
std::unique_ptr<AnswerShape> label_shape(const AnswerForm& form);
// [{"label": "car", "box": [x0, y0, x1, y1]}, …], in pixels of the picture that was sent, to one
// decimal, box by box. The label is null if missing. Corners are in order and within the picture;
// "clipped": true says that one was not. Incomplete boxes and boxes without an area are dropped.
std::unique_ptr<AnswerShape> box_shape(const BoxNotation& notation, const PictureSizes& sizes);

std::string label_json(const std::string& label);                 // {"label": "car"}
std::string labels_json(const std::vector<std::string>& labels);  // {"labels": ["car"]}

}  // namespace valora::serving
