#include "lab/trace/trace_point.h"

#include <fmt/format.h>

#include <algorithm>

namespace valora::bench {
namespace {

struct Field {
  const char* name;
  double (*value)(const TracePoint&);
};

constexpr Field kFields[] = {
    {"rate", [](const TracePoint& p) { return p.rate; }},
    {"skewness", [](const TracePoint& p) { return p.skewness; }},
    {"adapters", [](const TracePoint& p) { return static_cast<double>(p.adapters); }},
    {"cameras", [](const TracePoint& p) { return static_cast<double>(p.cameras); }},
    {"skills", [](const TracePoint& p) { return static_cast<double>(p.skills); }},
    {"replicas", [](const TracePoint& p) { return static_cast<double>(p.replicas); }},
};

}  // namespace

std::vector<std::string> names_of(const std::vector<TracePoint>& points) {
  std::vector<std::string> names(points.size());
  for (const Field& field : kFields) {
    const auto differs = [&](const TracePoint& p) {
      return field.value(p) != field.value(points.front());
    };
    if (std::ranges::none_of(points, differs)) continue;
    for (size_t i = 0; i < points.size(); ++i)
      names[i] += fmt::format("{}{} {:g}", names[i].empty() ? "" : ", ", field.name,
                              field.value(points[i]));
  }
  if (points.size() == 1) {
    const TracePoint& only = points.front();
    names[0] = only.cameras > 0 ? fmt::format("cameras {}", only.cameras)
                                : fmt::format("skewness {:g}", only.skewness);
  }
  return names;
}

Json json_of(const TracePoint& point) {
  Json out = Json::object();
  for (const Field& field : kFields) out[field.name] = field.value(point);
  return out;
}

}  // namespace valora::bench
