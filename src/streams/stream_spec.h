// The description of a stream, as clients send it and the disk keeps it (docs/streams.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "streams/condition.h"
#include "streams/frame_window.h"

namespace valora::streams {

// A question that is asked about the stream again and again.
struct StandingSkill {
  std::string name;               // of its answers
  OrderedJson request;            // as in "skills" of a chat (docs/skills.md): a name, or an object
  double every = 0;               // seconds between two answers, at least; 0: every frame
  std::optional<Condition> when;  // gives events
  int start_after = 1, end_after = 1;  // EventMachine
};

struct Webhook {
  std::string url;
  std::string secret;    // signs bodies; empty: not signed
  bool answers = false;  // sends answers, too, and not only events
};

// What the server's MQTT broker is told, if it has one.
struct MqttWishes {
  bool on = true;
  bool asked = false;      // the description has "mqtt", and not false
  bool answers = false;    // events of the type answers, too
  bool snapshots = false;  // the frames at which events begin
};

// When something counts as unchanged.
struct StillRule {
  double threshold = 8;  // the largest difference of means of brightness, 0 to 255
  double at_most = 60;   // seconds
};

struct StreamSpec {
  std::string name;      // for people; may be empty
  std::string source;    // a URL; empty: frames are pushed
  double fps = 1;        // most frames per second that are looked at
  bool realtime = true;  // false: a file is read as fast as it is answered, and no frame is dropped
  bool key_frames = false;  // of the source: others are not decoded
  WindowRule window;
  std::vector<StandingSkill> skills;
  OrderedJson shared;  // fields of the chats that are asked: max_tokens, priority, …
  std::optional<Webhook> webhook;
  MqttWishes mqtt;
  // A frame that does not differ from the last one that a skill was asked about is not asked about:
  // that answer stands (SkillTurns). Absent: every frame is asked about.
  std::optional<StillRule> still;
  std::optional<StillRule> still_blocks;  // of sources (StillBlocks)
  OrderedJson json;                       // the whole, as sent

  bool pushed() const { return source.empty(); }
};

// text: a JSON object. Errors name the field. The skills' own fields are not checked.
Result<StreamSpec> parse_stream_spec(std::string_view text);
// The spec as clients see it: without passwords in URLs and without the webhook's secret.
OrderedJson public_json(const StreamSpec& spec);
// "rtsp://user:secret@host/x" as "rtsp://***@host/x".
std::string without_password(const std::string& url);

// The text of a chat that asks these skills (indices) about frames; `media`: its content parts.
std::string chat_text(const StreamSpec& spec, const std::vector<size_t>& skills, OrderedJson media);

}  // namespace valora::streams
