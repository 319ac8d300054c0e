// A frame of a stream.
#pragma once

#include <cstdint>
#include <string>

namespace valora::streams {

struct Frame {
  int64_t id = 0;     // counts from 1 within the stream
  double time = 0;    // Unix time at which it came, in seconds; cameras' own clocks are not trusted
  std::string bytes;  // an encoded picture
  std::string type;   // "image/jpeg"
  int width = 0, height = 0;
};

}  // namespace valora::streams
