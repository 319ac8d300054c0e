#include "lab/cli/trace_workload.h"

#include <array>

#include "cli/options/named_option.h"

namespace valora::cli {
namespace {

constexpr std::array kApplications{"requests", "retrieval", "video"};

Result<TraceApplication> parse_application(const std::string& name) {
  for (size_t i = 0; i < kApplications.size(); ++i)
    if (name == kApplications[i]) return static_cast<TraceApplication>(i);
  return invalid("unknown application '" + name + "'; known: requests, retrieval, video");
}

template <typename T>
void add_list(Command c, const char* flag, std::vector<T>& values, const char* help) {
  c.add_option(flag, values, help).delimiter(',').capture_default_str();
}

template <typename T>
void add_value(Command c, const char* flag, T& value, const char* help) {
  c.add_option(flag, value, help).capture_default_str();
}

void add_sweep_flags(Command c, TraceWorkload& w) {
  add_list(c, "--rate", w.rates,
           "Mean requests per second, of retrieval conversations; 0 with --trace: as recorded. "
           "This and the next five take lists, e.g. 1,2,4; all combinations run");
  add_list(c, "--skewness", w.skewness, "Share of the requests that one adapter has");
  add_list(c, "--adapters", w.adapters, "Number of adapters; 0: the base model alone");
  add_list(c, "--cameras", w.cameras, "video: number of cameras");
  add_list(c, "--skills", w.skills,
           "video: adapters that are asked about each chunk at once, each with an invocation after "
           "the question; 0: one, without invocation");
  add_list(c, "--replicas", w.replicas,
           "With --simulate: servers that get the requests in turn; the figures are those of all");
}

void add_arrival_flags(Command c, TraceWorkload& w) {
  sim::WorkloadConfig& first = w.retrieval.first;
  add_named_option(c, "--application", w.application, parse_application,
                   "requests: independent of each other; retrieval: conversations about a picture; "
                   "video: cameras that send chunks of frames");
  add_named_option(c, "--arrivals", first.process, sim::parse_arrival_process,
                   "poisson, or gamma (bursts by --cv)");
  c.add_option("--trace", w.trace_file,
               "CSV of Azure's LLM inference trace: its times and lengths, scaled to --rate");
  add_value(c, "--cv", first.cv, "Coefficient of variation of gamma's inter-arrival times");
  c.add_option(
      "--clients", w.clients,
      "A closed loop: this many clients, each sending its next request when it has an answer");
  add_value(c, "--seconds", first.seconds, "Seconds in which requests arrive");
  add_value(c, "--seed", first.seed, "Seed of the requests");
  add_named_option(c, "--popularity", first.shares, sim::parse_adapter_shares,
                   "How the requests spread over adapters: uniform, power-law (--alpha) or skewed "
                   "(--skewness)");
  add_value(c, "--alpha", first.alpha, "Exponent of power-law");
  c.add_option("--phases", first.phases,
               "A load that shifts: skewness in equal parts of the time, e.g. 0.9,0.2; each part "
               "has another popular adapter")
      .delimiter(',');
}

void add_length_flags(Command c, TraceWorkload& w) {
  sim::WorkloadConfig& first = w.retrieval.first;
  add_value(c, "--prompt-min", first.prompt_min, "Fewest tokens of a prompt, or of a question");
  add_value(c, "--prompt-max", first.prompt_max, "Most tokens of a prompt, or of a question");
  add_value(c, "--answer-min", first.answer_min, "Fewest tokens of an answer");
  add_value(c, "--answer-max", first.answer_max, "Most tokens of an answer");
  add_value(c, "--most-tokens", first.max_tokens, "Tokens to which prompt and answer are cut");
  add_value(c, "--questions", w.retrieval.questions, "retrieval: questions of a conversation");
  add_value(c, "--think", w.retrieval.think,
            "retrieval: mean seconds from an answer to the next question");
  add_value(
      c, "--picture-tokens", w.retrieval.picture_tokens,
      "Tokens of a picture in simulated time; 0: no pictures. On an engine the model decides");
  add_value(c, "--period", w.streams.period, "video: seconds between the chunks of a camera");
  add_value(c, "--frames", w.streams.frames, "video: pictures of a chunk");
  c.add_flag("--activated", w.streams.activated,
             "video with --skills and --simulate: the adapters act from their invocations on "
             "(activated LoRA), so they share the frames and the question");
  c.add_option("--ttft-target", w.ttft_target,
               "Seconds within which a first token counts as in time")
      .positive_number()
      .capture_default_str();
  c.add_flag("--targets", w.targets,
             "Give each request this target; with --early-abort those that would miss it are "
             "refused");
}

Result<std::vector<sim::Arrival>> streams_of(const TraceWorkload& workload,
                                             const bench::TracePoint& point) {
  const sim::WorkloadConfig& first = workload.retrieval.first;
  sim::StreamConfig streams = workload.streams;
  streams.streams = point.cameras;
  streams.skills = point.skills;
  streams.adapters = point.adapters;
  streams.frame_tokens = std::max(1, workload.retrieval.picture_tokens);
  if (workload.retrieval.picture_tokens == 0) streams.frames = 0;
  streams.answer_min = first.answer_min;
  streams.answer_max = first.answer_max;
  streams.seconds = first.seconds;
  streams.seed = first.seed;
  return sim::make_streams(streams);
}

}  // namespace

const char* name_of(TraceApplication application) {
  return kApplications[static_cast<size_t>(application)];
}

void add_workload_flags(Command command, TraceWorkload& workload) {
  add_sweep_flags(command, workload);
  add_arrival_flags(command, workload);
  add_length_flags(command, workload);
}

Result<std::vector<bench::TracePoint>> points_of(const TraceWorkload& w) {
  const bool video = w.application == TraceApplication::kVideo;
  if (w.clients > 0 && w.application != TraceApplication::kRequests)
    return invalid("--clients needs --application requests", "clients");
  if (video && !w.trace_file.empty())
    return invalid("--trace does not go with --application video", "trace");
  if (!video && (w.streams.activated || w.skills != std::vector<int>{0}))
    return invalid("--skills and --activated need --application video", "skills");
  if (!w.retrieval.first.phases.empty() && w.skewness.size() > 1)
    return invalid("--phases replaces --skewness; give one of them", "phases");
  std::vector<bench::TracePoint> points;
  for (const int replicas : w.replicas)
    for (const int adapters : w.adapters)
      for (const int cameras : video ? w.cameras : std::vector<int>{0})
        for (const int skills : w.skills)
          for (const double rate : video ? std::vector<double>{0} : w.rates)
            for (const double skewness : video ? std::vector<double>{0} : w.skewness)
              points.push_back(
                  {.rate = video ? cameras / w.streams.period * std::max(1, skills) : rate,
                   .skewness = skewness,
                   .adapters = adapters,
                   .cameras = cameras,
                   .skills = skills,
                   .replicas = replicas});
  for (const bench::TracePoint& point : points)
    if (point.replicas < 1) return invalid("--replicas must be at least 1", "replicas");
  return points;
}

Result<std::vector<sim::Arrival>> arrivals_of(const TraceWorkload& workload,
                                              const bench::TracePoint& point,
                                              const std::vector<sim::TraceRow>& trace) {
  sim::RetrievalConfig retrieval = workload.retrieval;
  retrieval.first.rate = point.rate;
  retrieval.first.skewness = point.skewness;
  retrieval.first.adapters = point.adapters;
  if (!workload.trace_file.empty()) retrieval.first.process = sim::ArrivalProcess::kTrace;
  auto made = workload.application == TraceApplication::kVideo ? streams_of(workload, point)
              : workload.application == TraceApplication::kRetrieval
                  ? sim::make_retrieval(retrieval, trace)
                  : sim::make_workload(retrieval.first, trace);
  if (made.ok() && workload.clients > 0)
    made = sim::close_loop(std::move(made).value(), workload.clients);
  VALORA_TRY(arrivals, std::move(made));
  if (workload.targets)
    for (sim::Arrival& arrival : arrivals) arrival.ttft_target = from_seconds(workload.ttft_target);
  return arrivals;
}

}  // namespace valora::cli
