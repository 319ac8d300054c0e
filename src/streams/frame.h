// A frame of a stream.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "streams/luma_grid.h"

namespace valora::streams {

struct Frame {
  int64_t id = 0;     // counts from 1 within the stream
  double time = 0;    // Unix time at which it came, in seconds; only shown, because it may jump
  double came = 0;    // the same by the machine's steady clock; cameras' own clocks are not trusted
  std::string bytes;  // an encoded picture
  std::string type;   // "image/jpeg"
  int width = 0, height = 0;
  // The time by which skills are due and windows are cut: `came`, but of a file that is read as
  // fast as it is answered the seconds since its begin.
  double clock = 0;
  // Which connection to the source it came by, or which start of a pushed stream it followed.
  int64_t run = 0;
  std::shared_ptr<const LumaGrid> luma;  // null: not computed
};

}  // namespace valora::streams
