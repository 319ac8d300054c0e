// The sampler's view of a row of logits: the whole row, or the answers of a device that keeps it.
//
// A partial row lists some tokens with their logits: those that the sampler may change, and the
// best of the others. For the rest it has sums, and all their logits are lower than those of the
// best. A choice is made from it only if the whole row would give the same one; otherwise the row
// records the data it lacks. Changes and comparisons use the arithmetic of a whole row, so the same
// seed chooses the same tokens. Log probabilities sum over the row in another order, in double:
// they differ by at most 2^-52 times the vocabulary, 4e-11 for 152,000 tokens, before they are
// rounded to float.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/types/candidates.h"

namespace valora::serving {

using kernels::Candidate;

// The data that a row lacks for a choice.
struct Missing {
  bool all = false;  // the whole row
  int part = -1;     // else the tokens of this part (kernels::kPartTokens); -1: none
  explicit operator bool() const { return all || part >= 0; }
};

class PartialRow;

class LogitRow {
 public:
  virtual ~LogitRow() = default;
  LogitRow(const LogitRow&) = delete;
  LogitRow& operator=(const LogitRow&) = delete;

  // False if a logit from the model is NaN or plus infinity.
  virtual bool numbers() const = 0;
  // Sets logits to minus infinity where bit id % 32 of word id / 32 is 0 or there is no such word.
  virtual void keep(std::span<const uint32_t> allowed) = 0;
  // The token's logit, for modification. Null if the row has no such token; a partial row must list
  // it.
  virtual float* find(int32_t id) = 0;
  // Saves the current logits for before().
  virtual void remember() = 0;
  virtual float before(int32_t id) const = 0;
  virtual double log_sum_exp() const = 0;
  // The best tokens with finite logits, best first. nullopt if the row does not know them.
  virtual std::optional<std::vector<Candidate>> best_tokens(size_t count) const = 0;
  // Its logit is minus infinity only if all are.
  virtual Candidate best() const = 0;
  // The tokens with finite logits, as far as known. For a whole row, in order of id.
  virtual std::vector<Candidate> finite() const = 0;
  virtual PartialRow* in_part() { return nullptr; }

  // Set when a choice could not be made.
  const Missing& missing() const { return missing_; }
  std::nullopt_t lacks(Missing missing) {
    missing_ = missing;
    return std::nullopt;
  }

 protected:
  LogitRow() = default;

 private:
  Missing missing_;
};

class WholeRow final : public LogitRow {
 public:
  // logits: of all tokens, not empty; modified in place.
  explicit WholeRow(std::span<float> logits) : logits_(logits) {}

  bool numbers() const override;
  void keep(std::span<const uint32_t> allowed) override;
  float* find(int32_t id) override {
    return id >= 0 && static_cast<size_t>(id) < logits_.size() ? &logits_[id] : nullptr;
  }
  void remember() override { before_.assign(logits_.begin(), logits_.end()); }
  float before(int32_t id) const override { return before_[static_cast<size_t>(id)]; }
  double log_sum_exp() const override;
  std::optional<std::vector<Candidate>> best_tokens(size_t count) const override;
  Candidate best() const override;
  std::vector<Candidate> finite() const override;

 private:
  std::span<float> logits_;
  std::vector<float> before_;
};

class PartialRow final : public LogitRow {
 public:
  // query and found must outlive this object.
  PartialRow(const kernels::CandidateQuery& query, const kernels::Candidates& found);
  // Provides the model's logits of a missing part; they must outlive this object.
  void tell(int part, std::span<const float> logits) { known_part_ = part, part_ = logits; }

  bool numbers() const override { return found_.all.numbers != 0; }
  void keep(std::span<const uint32_t> allowed) override;
  float* find(int32_t id) override;
  void remember() override { before_ = listed_; }
  float before(int32_t id) const override;
  double log_sum_exp() const override;
  std::optional<std::vector<Candidate>> best_tokens(size_t count) const override;
  Candidate best() const override;
  std::vector<Candidate> finite() const override;
  PartialRow* in_part() override { return this; }

  const kernels::CandidateQuery& query() const { return query_; }
  // Sums over all unlisted tokens, and by part.
  const kernels::PartSums& others() const { return found_.all; }
  std::span<const kernels::PartSums> parts() const { return found_.parts; }
  // True if finite() has all tokens.
  bool complete() const;
  // The worst of the best unlisted tokens: every token missing from finite() is worse.
  Candidate bound() const;
  // Listed tokens with finite logits, in order of id.
  std::vector<Candidate> listed() const;
  // All tokens of a part with finite logits, in order of id. nullopt if the part is unknown.
  std::optional<std::vector<Candidate>> of_part(int part) const;

 private:
  std::optional<size_t> place_of(int32_t id) const;
  std::span<const Candidate> best_others() const;

  const kernels::CandidateQuery& query_;
  const kernels::Candidates& found_;
  const Candidate best_other_;
  std::vector<float> listed_, before_;  // logits of the query's listed tokens
  int known_part_ = -1;
  std::span<const float> part_;
};

}  // namespace valora::serving
