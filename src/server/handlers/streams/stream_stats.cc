#include "server/handlers/streams/stream_stats.h"

#include "streams/stream_set.h"

namespace valora::server {
namespace {

// Lag and rates of what came so far.
OrderedJson one_stream(const streams::Stream& stream) {
  const streams::StreamCounts counts = stream.counts();
  const auto came = static_cast<double>(counts.frames.came);
  const auto dropped = static_cast<double>(counts.frames.dropped);
  return {{"id", stream.id()},
          {"name", stream.spec().name},
          {"state", streams::state_name(stream.state())},
          {"frames", counts.frames.came},
          {"answered", counts.answered},
          {"drop_rate", came > 0 ? dropped / came : 0},
          {"lag", counts.lag}};
}

}  // namespace

OrderedJson stream_stats_json(const Service& service, const ServedUser* user) {
  if (service.streams == nullptr) return nullptr;
  OrderedJson states = OrderedJson::object(), data = OrderedJson::array();
  for (const streams::StreamState state : streams::kStreamStates)
    states[streams::state_name(state)] = 0;
  for (const streams::StreamPtr& stream : service.streams->all()) {
    if (user != nullptr && user->settings.name != stream->owner()) continue;
    OrderedJson one = one_stream(*stream);
    OrderedJson& count = states[one["state"].get_ref<const std::string&>()];
    count = count.get<int>() + 1;
    data.push_back(std::move(one));
  }
  return {{"states", std::move(states)}, {"data", std::move(data)}};
}

}  // namespace valora::server
