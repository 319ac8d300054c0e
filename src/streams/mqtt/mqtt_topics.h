// The topics of a stream, and the messages by which Home Assistant discovers them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "streams/stream_spec.h"

namespace valora::streams {

struct SkillTopics {
  std::string id;        // letters, digits, "-" and "_"; no other skill of the stream has it
  std::string answer;    // retained JSON
  std::string active;    // retained ON or OFF; empty: the skill has no condition
  std::string snapshot;  // retained JPEG; empty: the stream wants none, or there is no condition
};

struct StreamTopics {
  std::string base, state, events;
  std::vector<SkillTopics> skills;  // in the spec's order
};

struct RetainedText {
  std::string topic, payload;
};

// A name as one level of a topic: "Gate 1/a" as "Gate_1_a".
std::string topic_level(std::string_view name);
// base: PREFIX/streams/LEVEL.
StreamTopics stream_topics(const std::string& base, const StreamSpec& spec);

// One device for the stream, with an entity for its state, for each skill's answer, for each
// condition, and for each snapshot.
std::vector<RetainedText> discovery_messages(const std::string& discovery_prefix,
                                             const std::string& status_topic,
                                             const std::string& stream_id, const StreamSpec& spec,
                                             const StreamTopics& topics);

}  // namespace valora::streams
