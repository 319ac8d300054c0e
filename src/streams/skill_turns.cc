#include "streams/skill_turns.h"

#include <algorithm>
#include <utility>

namespace valora::streams {
namespace {

constexpr double kEarlyTurn = 0.02;  // seconds that a frame may come before a skill is due

}  // namespace

SkillTurns::SkillTurns(const std::vector<StandingSkill>& skills, std::optional<StillRule> still)
    : still_(still) {
  for (const StandingSkill& skill : skills) turns_.push_back({.every = skill.every});
}

std::vector<size_t> SkillTurns::due(double now, int64_t run) {
  std::vector<size_t> due;
  if (run != run_ && now < now_)
    for (Turn& turn : turns_) turn.due = 0;
  now_ = now;
  run_ = run;
  for (size_t i = 0; i < turns_.size(); ++i) {
    Turn& turn = turns_[i];
    if (now + kEarlyTurn < turn.due) continue;
    turn.due = std::max(turn.due + turn.every, now);
    if (turn.every > 0 && turn.due <= now) turn.due = now + turn.every;
    due.push_back(i);
  }
  return due;
}

bool SkillTurns::is_still(size_t skill, const LookPtr& frame) const {
  const LookPtr& before = turns_[skill].answered;
  if (!still_ || !frame || !before) return false;
  if (frame->run != before->run || frame->width != before->width || frame->height != before->height)
    return false;
  if (frame->time - before->time + kEarlyTurn >= still_->at_most) return false;
  return largest_difference(frame->grid, before->grid) <= still_->threshold;
}

void SkillTurns::asked(size_t skill, LookPtr frame, bool failed) {
  turns_[skill].answered = failed ? nullptr : std::move(frame);
}

}  // namespace valora::streams
