// The frames of a video as its packets announce them, and where decoding must begin for each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace valora::media {

// A packet of the video stream, in the order of the file.
struct PacketMark {
  int64_t time = 0;   // presentation time, in the stream's units
  bool key = false;   // decoding can begin here
  bool shown = true;  // gives a frame; false: a reference only, or cut off by an edit list
  bool timed = true;  // has a presentation time
};

// Frames numbered in display order. Holds only where each shown packet gives one frame.
class FrameIndex {
 public:
  // Absent if frames cannot be told from packets: no times, or several packets with one time.
  static std::optional<FrameIndex> from(std::span<const PacketMark> packets);

  int64_t frames() const { return static_cast<int64_t>(shown_.size()); }
  int64_t time(int64_t frame) const { return shown_[static_cast<size_t>(frame)].time; }
  // The packet that holds the frame.
  int64_t packet(int64_t frame) const { return shown_[static_cast<size_t>(frame)].packet; }
  // The last key packet from which decoding gives the frame, or else the file's first packet.
  // Leading pictures, which follow a key packet and are shown before it, need the key before.
  struct Key {
    int64_t packet = 0;
    int64_t frame = 0;  // the first that decoding from the packet gives
  };
  Key start(int64_t frame) const;
  // The first frame that is shown at this time or later.
  int64_t frame_at(int64_t time) const;

  // A run of packets to decode without a gap, and the frames that are kept of it.
  struct Run {
    int64_t first = 0;    // packet
    int64_t end = 0;      // after the last kept frame's packet
    int64_t from = 0;     // the first frame that decoding gives; those before it are incomplete
    size_t kept_end = 0;  // index into `kept`, after the run's last one
  };
  // kept: ascending frames, each once or more.
  std::vector<Run> runs(std::span<const int64_t> kept) const;

 private:
  struct Shown {
    int64_t time, packet;
  };
  std::vector<Shown> shown_;  // in display order
  std::vector<Shown> keys_;   // in the order of the file
};

// The packets that the runs decode.
int64_t packets_of(std::span<const FrameIndex::Run> runs);

}  // namespace valora::media
