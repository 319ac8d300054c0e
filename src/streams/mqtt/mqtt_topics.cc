#include "streams/mqtt/mqtt_topics.h"

#include <fmt/format.h>

#include <set>

namespace valora::streams {
namespace {

// A state of Home Assistant has at most 255 characters; the whole answer is an attribute. The
// answer's time is none, since each new attribute is a row in Home Assistant's database.
// A topic that is forgotten has an empty payload, which is no JSON.
constexpr const char* kAnswerTemplate = "{{ value_json.content[:255] if value_json is defined }}";
constexpr const char* kAnswerAttributes =
    "{{ ({'content': value_json.content} if value_json is defined else {}) | tojson }}";
constexpr const char* kRunningTemplate = "{{ 'online' if value == 'running' else 'offline' }}";

std::string entity_id(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '-' && c != '_') c = '_';
  }
  return out;
}

// Appends "_2", "_3", … to a text that is taken.
std::string unlike(std::set<std::string>& taken, std::string text) {
  std::string out = text;
  for (int i = 2; !taken.insert(out).second; ++i) out = fmt::format("{}_{}", text, i);
  return out;
}

}  // namespace

std::string topic_level(std::string_view name) {
  std::string out(name);
  for (char& c : out)
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f' ||
        std::string_view("/+#$\"\\").find(c) != std::string_view::npos)
      c = '_';
  return out;
}

StreamTopics stream_topics(const std::string& base, const StreamSpec& spec) {
  StreamTopics out{base, base + "/state", base + "/events", {}};
  std::set<std::string> levels, ids;
  for (const StandingSkill& skill : spec.skills) {
    const std::string own = base + "/skills/" + unlike(levels, topic_level(skill.name));
    SkillTopics& topics = out.skills.emplace_back();
    topics.id = unlike(ids, entity_id(skill.name));
    topics.answer = own + "/answer";
    if (skill.when) topics.active = own + "/active";
    if (skill.when && spec.mqtt.snapshots) topics.snapshot = own + "/snapshot";
  }
  return out;
}

std::vector<RetainedText> discovery_messages(const std::string& discovery_prefix,
                                             const std::string& status_topic,
                                             const std::string& stream_id, const StreamSpec& spec,
                                             const StreamTopics& topics) {
  const std::string node = "valora_" + stream_id;
  const OrderedJson device{{"identifiers", OrderedJson::array({node})},
                           {"name", spec.name.empty() ? stream_id : spec.name},
                           {"manufacturer", "valora"},
                           {"model", "live stream"},
                           {"sw_version", VALORA_VERSION}};
  const OrderedJson of_server{{"topic", status_topic}},
      of_stream{{"topic", topics.state}, {"value_template", kRunningTemplate}};
  std::vector<RetainedText> out;
  const auto add = [&](const char* component, const std::string& id, const std::string& name,
                       bool only_running, const OrderedJson& fields) {
    OrderedJson config{{"name", name}, {"unique_id", node + "_" + id}};
    config.update(fields);
    config["availability"] = OrderedJson::array({of_server});
    if (only_running) config["availability"].push_back(of_stream);
    config["availability_mode"] = "all";
    config["device"] = device;
    config["origin"] = {{"name", "valora"}, {"sw_version", VALORA_VERSION}};
    out.push_back({fmt::format("{}/{}/{}/{}/config", discovery_prefix, component, node, id),
                   config.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)});
  };
  add("sensor", "state", "State", false,
      {{"state_topic", topics.state}, {"entity_category", "diagnostic"}});
  for (size_t i = 0; i < topics.skills.size(); ++i) {
    const SkillTopics& skill = topics.skills[i];
    const std::string& name = spec.skills[i].name;
    add("sensor", skill.id + "_answer", name, true,
        {{"state_topic", skill.answer},
         {"value_template", kAnswerTemplate},
         {"json_attributes_topic", skill.answer},
         {"json_attributes_template", kAnswerAttributes}});
    if (!skill.active.empty())
      add("binary_sensor", skill.id + "_active", name + " active", true,
          {{"state_topic", skill.active}, {"payload_on", "ON"}, {"payload_off", "OFF"}});
    if (!skill.snapshot.empty())
      add("image", skill.id + "_snapshot", name + " snapshot", false,
          {{"image_topic", skill.snapshot}, {"content_type", "image/jpeg"}});
  }
  return out;
}

}  // namespace valora::streams
