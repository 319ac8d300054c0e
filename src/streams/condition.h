// Conditions over a skill's answers, and the events that they give (docs/streams.md). Pure: no
// clocks, no threads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::streams {

struct AnswerBox {
  std::string label;
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // shares of the frame's width and height, 0 … 1
  std::optional<double> confidence;
};

// What conditions see of an answer.
struct SkillAnswer {
  std::string text;             // of a label, the label
  std::optional<double> score;  // probability of the label, if log probabilities were asked for
  std::vector<AnswerBox> boxes;
};

// {"label": L or [L, …], "min_score": S}        the answer is one of these labels
// {"contains": TEXT}                            the answer has this text, in any case
// {"boxes": {"label": L or [L, …], "min": N, "max": M, "zone": [[x, y], …], "min_confidence": C}}
//                                               between N (1) and M boxes, with centers in the zone
// {"changes": true}                             the answer differs from the one before
// {"not": CONDITION}, {"all": [CONDITION, …]}, {"any": [CONDITION, …]}
class Condition {
 public:
  // Errors name the path of the fault within `path`.
  static Result<Condition> parse(const Json& json, const std::string& path);
  // before: the skill's answer to the frame before; null: there is none.
  bool holds(const SkillAnswer& answer, const SkillAnswer* before) const;

 private:
  enum class Kind { kLabel, kContains, kBoxes, kChanges, kNot, kAll, kAny };
  struct Point {
    double x = 0, y = 0;
  };

  static Result<Condition> parse_at(const Json& json, const std::string& path, int depth);
  static Status parse_boxes(const Json& json, const std::string& path, Condition& out);
  static Result<std::vector<Point>> parse_zone(const Json& json, const std::string& path);
  bool has_label(const std::string& label) const;
  bool counts(const AnswerBox& box) const;
  static bool inside(const std::vector<Point>& zone, double x, double y);

  Kind kind_ = Kind::kLabel;
  std::vector<std::string> labels_;  // empty: any
  double least_ = 0;                 // score or confidence
  std::string text_;                 // in lower case
  int64_t min_ = 1, max_ = INT64_MAX;
  std::vector<Point> zone_;  // a polygon; empty: the whole frame
  std::vector<Condition> parts_;
};

enum class Edge { kNone, kStart, kEnd };

// An event begins once its condition held for `start_after` answers in a row, and ends once it did
// not for `end_after` (hysteresis).
class EventMachine {
 public:
  EventMachine(int start_after, int end_after) : start_after_(start_after), end_after_(end_after) {}

  Edge step(bool holds);
  bool active() const { return active_; }

 private:
  int start_after_, end_after_;
  bool active_ = false;
  int run_ = 0;  // answers in a row that speak against the state
};

}  // namespace valora::streams
