#include "lab/sim/vision_workload.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/sim/random.h"
#include "lab/sim/simulated_executor.h"

namespace valora::sim {
namespace {

constexpr int kMostTurns = 1000;
constexpr int kMostFrames = 1000;
constexpr int kMostTokens = 1 << 20;

struct Range {
  const char* field;
  double value, least, most;
};

Status check_ranges(std::initializer_list<Range> ranges) {
  for (const auto& [field, value, least, most] : ranges)
    if (!(value >= least && value <= most))
      return invalid(fmt::format("{} must be from {} to {}", field, least, most), field);
  return {};
}

// Prepends a picture, or the earlier part of a prompt, to a question.
std::vector<int32_t> joined(std::vector<int32_t> front, const std::vector<int32_t>& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

// The next turn of the conversation whose last turn is arrival `before`.
Arrival next_turn(const std::vector<Arrival>& arrivals, size_t before,
                  const RetrievalConfig& config, Random& lengths, Random& tokens, Random& times) {
  const Arrival& last = arrivals[before];
  const WorkloadConfig& first = config.first;
  Arrival turn{.at = from_seconds(config.think * times.exponential()),
               .prompt = last.prompt,
               .answer_tokens = lengths.between(first.answer_min, first.answer_max),
               .adapter = last.adapter,
               .previous = before,
               .after = before};
  // simulate() gives arrival `before` the id before + 1.
  for (int i = 0; i < last.answer_tokens; ++i) turn.prompt.push_back(answer_token(before + 1, i));
  turn.prompt = joined(std::move(turn.prompt),
                       random_prompt(tokens, lengths.between(first.prompt_min, first.prompt_max)));
  return turn;
}

// A chunk of frames of one stream, and the requests about it.
struct Chunk {
  Duration at{};
  std::vector<Arrival> requests;
};

Status check_skills(const StreamConfig& config) {
  VALORA_CHECK(check_ranges(
      {{"skills", static_cast<double>(config.skills), 0, 1000},
       {"invocation_tokens", static_cast<double>(config.invocation_tokens), 1, 65536}}));
  if (config.adapters > 0 && config.skills > config.adapters)
    return invalid(
        fmt::format("skills must be at most the number of adapters, {}", config.adapters),
        "skills");
  if (config.activated && (config.skills == 0 || config.adapters == 0))
    return invalid("activated needs skills and adapters", "activated");
  return {};
}

// One request per skill, about the same frames and question.
std::vector<Arrival> ask_skills(const Arrival& chunk, int stream, const StreamConfig& config,
                                Random& tokens, Random& lengths) {
  std::vector<Arrival> requests;
  for (int skill = 0; skill < config.skills; ++skill) {
    Arrival& request = requests.emplace_back(chunk);
    request.prompt = joined(chunk.prompt, random_prompt(tokens, config.invocation_tokens));
    if (config.adapters > 0) request.adapter = (stream + skill) % config.adapters;
    if (config.activated) request.acts_from = static_cast<int>(chunk.prompt.size());
    if (skill > 0) request.answer_tokens = lengths.between(config.answer_min, config.answer_max);
  }
  return requests;
}

// In order of time; the later requests of a chunk have the pictures of its first one.
std::vector<Arrival> flatten(std::vector<Chunk> chunks) {
  std::ranges::stable_sort(chunks, {}, &Chunk::at);
  std::vector<Arrival> arrivals;
  for (Chunk& chunk : chunks) {
    const size_t first = arrivals.size();
    for (Arrival& request : chunk.requests) {
      if (arrivals.size() > first) request.pictures_of = first;
      arrivals.push_back(std::move(request));
    }
  }
  return arrivals;
}

}  // namespace

Result<std::vector<Arrival>> make_retrieval(const RetrievalConfig& config,
                                            std::span<const TraceRow> trace) {
  VALORA_CHECK(check_ranges(
      {{"questions", static_cast<double>(config.questions), 1, kMostTurns},
       {"think", config.think, 0, 1e6},
       {"picture_tokens", static_cast<double>(config.picture_tokens), 0, kMostTokens}}));
  VALORA_TRY(first, make_workload(config.first, trace));
  Random lengths(config.first.seed, Random::kLaterLengths);
  Random tokens(config.first.seed, Random::kLaterTokens);
  Random times(config.first.seed, Random::kLaterTimes);
  const auto most = static_cast<size_t>(config.first.max_tokens);
  std::vector<Arrival> arrivals;
  for (Arrival& opening : first) {
    opening.pictures = config.picture_tokens > 0 ? 1 : 0;
    opening.picture_tokens = config.picture_tokens;
    opening.prompt = joined(random_prompt(tokens, config.picture_tokens), opening.prompt);
    arrivals.push_back(std::move(opening));
    for (int turn = 1; turn < config.questions; ++turn) {
      Arrival next = next_turn(arrivals, arrivals.size() - 1, config, lengths, tokens, times);
      if (next.prompt.size() + static_cast<size_t>(next.answer_tokens) > most) break;
      arrivals.push_back(std::move(next));
    }
    if (arrivals.size() > kMaxRequests)
      return invalid(
          fmt::format("questions must be fewer: at most {} requests are made", kMaxRequests),
          "questions");
  }
  return arrivals;
}

Result<std::vector<Arrival>> make_streams(const StreamConfig& config) {
  VALORA_CHECK(
      check_ranges({{"streams", static_cast<double>(config.streams), 1, 10'000},
                    {"period", config.period, 1e-3, 1e6},
                    {"frames", static_cast<double>(config.frames), 0, kMostFrames},
                    {"frame_tokens", static_cast<double>(config.frame_tokens), 1, 65536},
                    {"question_tokens", static_cast<double>(config.question_tokens), 1, 65536},
                    {"answer_min", static_cast<double>(config.answer_min), 1, 65536},
                    {"answer_max", static_cast<double>(config.answer_max),
                     static_cast<double>(config.answer_min), 65536},
                    {"seconds", config.seconds, 1e-3, 1e6}}));
  VALORA_CHECK(check_skills(config));
  if (config.streams * (config.seconds / config.period + 1) * std::max(1, config.skills) >
      kMaxRequests)
    return invalid(fmt::format("streams must be fewer: at most {} requests are made", kMaxRequests),
                   "streams");
  std::vector<Chunk> chunks;
  Random phases(config.seed, Random::kTimes), tokens(config.seed, Random::kTokens);
  Random lengths(config.seed, Random::kLengths);
  const int of_frames = config.frames * config.frame_tokens;
  for (int stream = 0; stream < config.streams; ++stream) {
    const double phase = phases.uniform();
    for (int chunk = 0; (chunk + phase) * config.period < config.seconds; ++chunk) {
      const Arrival one{
          .at = from_seconds((chunk + phase) * config.period),
          .prompt = random_prompt(tokens, of_frames + config.question_tokens),
          .answer_tokens = lengths.between(config.answer_min, config.answer_max),
          .adapter = config.adapters > 0 ? stream % config.adapters : scheduler::kBaseModel,
          .pictures = config.frames,
          .picture_tokens = of_frames};
      chunks.push_back({one.at, config.skills == 0
                                    ? std::vector{one}
                                    : ask_skills(one, stream, config, tokens, lengths)});
    }
  }
  return flatten(std::move(chunks));
}

Result<std::vector<Arrival>> close_loop(std::vector<Arrival> arrivals, int clients) {
  if (clients < 1) return invalid("clients must be at least 1", "clients");
  for (size_t i = 0; i < arrivals.size(); ++i) {
    arrivals[i].at = {};
    if (i >= static_cast<size_t>(clients)) arrivals[i].after = i - static_cast<size_t>(clients);
  }
  return arrivals;
}

}  // namespace valora::sim
