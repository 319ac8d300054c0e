// Labels and boxes: the text that a model writes for them, and the JSON that its client gets.
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

// Whether an adapter of this form can answer a kLabels or kBoxes, and whether the prompt has the
// one picture that boxes need. kInvalidArgument names the constraint's field.
Status check_shape(const AnswerConstraint& constraint, const AnswerForm& form,
                   const Prompt& prompt);

// The constraint on the text of a model that answers a kLabels or kBoxes; others are unchanged.
AnswerConstraint constraint_on_text(const AnswerConstraint& constraint, const AnswerForm& form);

// Turns the text of one answer into JSON, as it comes.
class AnswerShape {
 public:
  virtual ~AnswerShape() = default;
  virtual std::string push(const std::string& text) = 0;  // what can be said already
  virtual std::string finish() = 0;                       // the rest
};

struct PictureSize {
  int width = 0, height = 0;
};

// {"label": "car"}, as a whole at the end; null if the answer was cut.
std::unique_ptr<AnswerShape> label_shape(const AnswerForm& form);
// [{"label": "car", "box": [x0, y0, x1, y1]}, …], in pixels to a tenth, box by box. The label is
// null if there is none. What was cut and boxes without an area are left out.
std::unique_ptr<AnswerShape> box_shape(const BoxNotation& notation, PictureSize picture);

std::string label_json(const std::string& label);                 // {"label": "car"}
std::string labels_json(const std::vector<std::string>& labels);  // {"labels": ["car"]}

}  // namespace valora::serving
