// Labels and boxes: the text that a model generates for them, and the JSON sent to the client.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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
  // The JSON that is final so far. logprob: the log probability of the tokens that wrote the text.
  virtual std::string push(const std::string& text, double logprob = 0) = 0;
  virtual std::string finish() = 0;  // the rest
};

struct PictureSize {
  int width = 0, height = 0;
};

struct PictureSizes {
  PictureSize sent;  // by the client, with its orientation applied
  PictureSize seen;  // by the model; needed for a notation in its pixels
};

// {"label": "car"}, emitted at the end; null if the answer was cut off. With `confidence` also the
// label's probability among the task's.
std::unique_ptr<AnswerShape> label_shape(const AnswerForm& form, const ShapeOutput& output = {});
// [{"label": "car", "box": [x0, y0, x1, y1]}, …], in pixels of the picture that was sent, to one
// decimal, box by box, or in another form of `output`. The label is null if missing. Corners are in
// order and within the picture; "clipped": true says that one was not. Incomplete boxes and boxes
// without an area are dropped. With `confidence`, "label_confidence" is the probability of the
// label's tokens together, and "confidence" the geometric mean of those of the corners' tokens:
// both as the model chose among what the notation allows.
std::unique_ptr<AnswerShape> box_shape(const BoxNotation& notation, const PictureSizes& sizes,
                                       const ShapeOutput& output = {});

// {"label": "car"}, with a probability if it is given.
std::string label_json(const std::string& label, std::optional<double> confidence = {});
// {"labels": ["car"]}, with as many probabilities if they are given.
std::string labels_json(const std::vector<std::string>& labels,
                        const std::vector<double>& confidences = {});

}  // namespace valora::serving
