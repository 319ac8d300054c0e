#include "media/video/frame_index.h"

#include <algorithm>

namespace valora::media {

std::optional<FrameIndex> FrameIndex::from(std::span<const PacketMark> packets) {
  FrameIndex index;
  for (size_t i = 0; i < packets.size(); ++i) {
    const PacketMark& packet = packets[i];
    if (!packet.timed) return {};
    const Shown at{packet.time, static_cast<int64_t>(i)};
    if (packet.shown) index.shown_.push_back(at);
    if (packet.key) index.keys_.push_back(at);
  }
  std::sort(index.shown_.begin(), index.shown_.end(),
            [](const Shown& a, const Shown& b) { return a.time < b.time; });
  const auto same =
      std::adjacent_find(index.shown_.begin(), index.shown_.end(),
                         [](const Shown& a, const Shown& b) { return a.time == b.time; });
  if (index.shown_.empty() || same != index.shown_.end()) return {};
  return index;
}

FrameIndex::Key FrameIndex::start(int64_t frame) const {
  const Shown& wanted = shown_[static_cast<size_t>(frame)];
  auto key = std::upper_bound(keys_.begin(), keys_.end(), wanted.packet,
                              [](int64_t packet, const Shown& k) { return packet < k.packet; });
  while (key != keys_.begin())
    if ((--key)->time <= wanted.time && key->packet > 0) return {key->packet, frame_at(key->time)};
  return {};
}

int64_t FrameIndex::frame_at(int64_t time) const {
  const auto at = std::lower_bound(shown_.begin(), shown_.end(), time,
                                   [](const Shown& a, int64_t wanted) { return a.time < wanted; });
  return at - shown_.begin();
}

std::vector<FrameIndex::Run> FrameIndex::runs(std::span<const int64_t> kept) const {
  std::vector<Run> runs;
  for (size_t i = 0; i < kept.size(); ++i) {
    const Key key = start(kept[i]);
    const int64_t end = packet(kept[i]) + 1;
    if (runs.empty() || key.packet > runs.back().end)
      runs.push_back({key.packet, end, key.frame, i});
    runs.back().end = std::max(runs.back().end, end);
    runs.back().kept_end = i + 1;
  }
  return runs;
}

int64_t packets_of(std::span<const FrameIndex::Run> runs) {
  int64_t packets = 0;
  for (const FrameIndex::Run& run : runs) packets += run.end - run.first;
  return packets;
}

}  // namespace valora::media
