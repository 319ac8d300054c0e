// The form that a request requires of its answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace valora {

// How answers of the kinds kLabels and kBoxes are written.
struct ShapeOutput {
  enum class Boxes : uint8_t {
    kCorners,  // "box": [x0, y0, x1, y1] in pixels
    kBbox2d,   // the same as "bbox_2d", which supervision reads
    kCoco,     // "bbox": [x, y, width, height] in pixels
    kYolo,     // "xywhn": [centre x, centre y, width, height] as shares of the picture's sides
  };
  Boxes boxes = Boxes::kCorners;
  bool confidence = false;  // with probabilities of labels and boxes
  bool sizes = false;       // boxes within an object that has the sizes of the picture
};

struct AnswerConstraint {
  enum class Kind : uint8_t {
    kJsonObject,     // any JSON object
    kJsonSchema,     // `text` is the schema
    kRegex,          // `text` matches the whole answer
    kChoice,         // one of `choices`
    kEbnf,           // `text` is a grammar; its first rule is "root"
    kStructuralTag,  // `text` is a JSON description
    kLabels,         // JSON with a label of the adapter's task (AnswerForm)
    kBoxes,          // a JSON list of boxes in pixels of the prompt's only picture; their labels
                     // are among `choices`, if there are any
  };
  Kind kind = Kind::kJsonObject;
  std::string text;
  std::vector<std::string> choices;
  bool strict = true;  // kJsonSchema: allow nothing that the schema does not mention
  std::string param;   // request field named in errors
  // A weaker description of the same kind, used if no grammar can express `text`; empty: none.
  std::string fallback = {};
  ShapeOutput output = {};
};

}  // namespace valora
