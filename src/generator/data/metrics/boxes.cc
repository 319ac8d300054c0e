// Box metrics: F1 over the whole set, and the accuracy of the first box, both at an overlap of 0.5.
#include "generator/data/answer_text.h"
#include "generator/data/box_text.h"
#include "generator/data/metrics/families.h"

namespace valora::generator {
namespace {

constexpr double kOverlap = 0.5;

// Maximum bipartite matching of boxes with one label (Kuhn's algorithm). Unlike a greedy matching,
// it does not depend on the order of the boxes.
class Matching {
 public:
  Matching(const std::vector<LabelledBox>& truths, const std::vector<LabelledBox>& answers,
           bool by_label)
      : fitting_(truths.size()), taken_by_(answers.size(), kNobody) {
    for (size_t t = 0; t < truths.size(); ++t)
      for (size_t a = 0; a < answers.size(); ++a)
        if ((!by_label || folded(truths[t].label) == folded(answers[a].label)) &&
            overlap(truths[t].box, answers[a].box) >= kOverlap)
          fitting_[t].push_back(a);
  }

  int64_t pairs() {
    int64_t count = 0;
    for (size_t t = 0; t < fitting_.size(); ++t) {
      tried_.assign(taken_by_.size(), false);
      count += find_partner(t);
    }
    return count;
  }

 private:
  static constexpr size_t kNobody = -1;

  // A partner that is taken is reassigned if its current match can find another.
  bool find_partner(size_t truth) {
    for (const size_t answer : fitting_[truth]) {
      if (tried_[answer]) continue;
      tried_[answer] = true;
      if (taken_by_[answer] != kNobody && !find_partner(taken_by_[answer])) continue;
      taken_by_[answer] = truth;
      return true;
    }
    return false;
  }

  std::vector<std::vector<size_t>> fitting_;  // answers by truth
  std::vector<size_t> taken_by_;              // truth by answer
  std::vector<bool> tried_;
};

std::vector<LabelledBox> boxes_of(const Prediction& prediction, const BoxFormat& format) {
  return prediction.boxes ? *prediction.boxes : read_boxes(prediction.text, format);
}

// With nothing to find and nothing found, the score is 1.
double f1(int64_t pairs, int64_t boxes) {
  return boxes == 0 ? 1 : 2 * static_cast<double>(pairs) / static_cast<double>(boxes);
}

}  // namespace

Result<Score> score_f1_at_iou(const Task& task, Samples samples, Predictions predictions) {
  Score score;
  int64_t all_pairs = 0, all_boxes = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::vector<LabelledBox> answers = boxes_of(predictions[i], task.boxes);
    const int64_t pairs = Matching(samples[i].boxes, answers, task.boxes.labels).pairs();
    const auto boxes = static_cast<int64_t>(samples[i].boxes.size() + answers.size());
    score.of_samples.push_back(f1(pairs, boxes));
    all_pairs += pairs;
    all_boxes += boxes;
  }
  score.value = f1(all_pairs, all_boxes);
  return score;
}

Result<Score> score_accuracy_at_iou(const Task& task, Samples samples, Predictions predictions) {
  std::vector<double> right;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].boxes.empty()) return lacking(samples[i], "box to compare with");
    const std::vector<LabelledBox> answers = boxes_of(predictions[i], task.boxes);
    right.push_back(!answers.empty() &&
                    overlap(samples[i].boxes.front().box, answers.front().box) >= kOverlap);
  }
  return mean_of(std::move(right));
}

}  // namespace valora::generator
