// Which skills of a stream are due at a frame, and for which of them nothing in it has changed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "streams/luma_grid.h"
#include "streams/stream_spec.h"

namespace valora::streams {

// What frames are compared by.
struct Look {
  LumaGrid grid;
  int width = 0, height = 0;
  int64_t run = 0;  // Frame::run
  double time = 0;  // Frame::clock
};
using LookPtr = std::shared_ptr<const Look>;  // null: unknown, which differs from all

class SkillTurns {
 public:
  SkillTurns(const std::vector<StandingSkill>& skills, std::optional<StillRule> still);

  // The skills that are due at a frame of this Frame::clock and Frame::run. They are then due again
  // after `every`. A run whose clock begins anew, that of a file, makes all due.
  std::vector<size_t> due(double now, int64_t run);
  // True if the skill's last answer stands: it was about a frame of the same run and size that does
  // not differ, and is not too old.
  bool is_still(size_t skill, const LookPtr& frame) const;
  // The skill has been asked about this frame. failed: no answer stands.
  void asked(size_t skill, LookPtr frame, bool failed);

 private:
  struct Turn {
    double every = 0, due = 0;
    LookPtr answered;  // the frame of its last answer
  };

  const std::optional<StillRule> still_;
  std::vector<Turn> turns_;
  double now_ = 0;  // of the last frame
  int64_t run_ = 0;
};

}  // namespace valora::streams
