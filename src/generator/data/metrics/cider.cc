// CIDEr-D (Vedantam et al. 2015) as in the published caption evaluation, divided by 10. Document
// frequencies come from the references of the scored samples, so the score of a set is not the mean
// of its parts' scores. Words that all samples contain weigh nothing, and a set of one sample
// scores 0.
#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "generator/data/answer_text.h"
#include "generator/data/metrics/families.h"

namespace valora::generator {
namespace {

constexpr int kOrders = 4;    // n-grams of 1 to 4 words
constexpr double kSigma = 6;  // of the length penalty

template <typename T>
using ByGram = std::unordered_map<std::string,
                                  T>;  // the words joined by spaces, so that no two orders share a
                                       // key

struct Caption {
  std::array<ByGram<int>, kOrders> counts;
  int bigrams = 0;  // the published code's measure of length
};

Caption read_caption(const std::string& text) {
  const std::vector<std::string> words = caption_words(text);
  Caption caption;
  for (size_t begin = 0; begin < words.size(); ++begin) {
    std::string gram;
    for (size_t n = 0; n < kOrders && begin + n < words.size(); ++n) {
      gram += (n ? " " : "") + words[begin + n];
      ++caption.counts[n][gram];
    }
  }
  caption.bigrams = words.empty() ? 0 : static_cast<int>(words.size()) - 1;
  return caption;
}

struct Weights {
  std::array<ByGram<double>, kOrders> of_grams;
  std::array<double, kOrders> norms{};
  int bigrams = 0;
};

// Weights of n-grams: the fewer samples have one in a reference, the higher.
class Frequencies {
 public:
  explicit Frequencies(const std::vector<std::vector<Caption>>& references)
      : log_samples_(std::log(static_cast<double>(references.size()))) {
    for (const std::vector<Caption>& of_sample : references) {
      std::unordered_set<std::string> seen;
      for (const Caption& reference : of_sample)
        for (const ByGram<int>& counts : reference.counts)
          for (const auto& [gram, count] : counts)
            if (seen.insert(gram).second) ++samples_with_[gram];
    }
  }

  Weights weigh(const Caption& caption) const {
    Weights weights;
    weights.bigrams = caption.bigrams;
    for (int n = 0; n < kOrders; ++n) {
      for (const auto& [gram, count] : caption.counts[n]) {
        const auto found = samples_with_.find(gram);
        const double weight =
            count * (log_samples_ - (found == samples_with_.end() ? 0 : std::log(found->second)));
        weights.of_grams[n][gram] = weight;
        weights.norms[n] += weight * weight;
      }
      weights.norms[n] = std::sqrt(weights.norms[n]);
    }
    return weights;
  }

 private:
  double log_samples_;
  ByGram<int> samples_with_;
};

// An answer's weights are clipped to the reference's counts: repeating a word gains nothing.
double similarity(const Weights& answer, const Weights& reference) {
  double sum = 0;
  for (int n = 0; n < kOrders; ++n) {
    double product = 0;
    for (const auto& [gram, weight] : answer.of_grams[n]) {
      const auto found = reference.of_grams[n].find(gram);
      if (found != reference.of_grams[n].end())
        product += std::min(weight, found->second) * found->second;
    }
    const double norms = answer.norms[n] * reference.norms[n];
    sum += norms > 0 ? product / norms : 0;
  }
  const double difference = answer.bigrams - reference.bigrams;
  return std::min(1.0, sum / kOrders) *
         std::exp(-difference * difference / (2 * kSigma * kSigma));  // may exceed 1 by rounding
}

}  // namespace

Result<Score> score_cider(Samples samples, Predictions predictions) {
  std::vector<std::vector<Caption>> references;
  for (const Sample& sample : samples) {
    references.emplace_back();
    for (const std::string& text : references_of(sample))
      references.back().push_back(read_caption(text));
    if (references.back().empty()) return lacking(sample, "caption to compare with");
  }
  const Frequencies frequencies(references);
  std::vector<double> shares;
  for (size_t i = 0; i < samples.size(); ++i) {
    const Weights answer = frequencies.weigh(read_caption(answer_of(predictions[i])));
    double sum = 0;
    for (const Caption& reference : references[i])
      sum += similarity(answer, frequencies.weigh(reference));
    shares.push_back(sum / static_cast<double>(references[i].size()));
  }
  return mean_of(std::move(shares));
}

}  // namespace valora::generator
