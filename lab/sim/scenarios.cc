#include "lab/sim/scenarios.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>

namespace valora::sim {
namespace {

// Mean behaviour of an application's users.
struct Habits {
  double turns;
  int prefix;    // prefix shared by all conversations with one adapter, in tokens
  int question;  // tokens per turn
  int answer;    // tokens per turn
  double pause;  // seconds between an answer and the next question
};

Habits habits_of(Application application) {
  switch (application) {
    case Application::kTranslation: return {1, 0, 50, 60, 0};
    case Application::kAgent: return {10, 512, 30, 40, 15};
    case Application::kChat: break;
  }
  return {4, 0, 70, 150, 30};
}

// Seconds a user waits per token, for placing the next turn in time.
constexpr double kSecondsPerToken = 0.04;

struct Turn {
  double at = 0;
  size_t conversation = 0;
  int number = 0;
  int question = 0, answer = 0;
};

class Generator {
 public:
  explicit Generator(const ScenarioConfig& config)
      : config_(config), habits_(habits_of(config.application)), random_(config.seed) {}

  std::vector<Arrival> run() {
    make_turns();
    std::ranges::stable_sort(turns_, {}, &Turn::at);
    std::vector<Arrival> arrivals;
    for (const Turn& turn : turns_) arrivals.push_back(arrive(turn, arrivals.size() + 1));
    return arrivals;
  }

 private:
  struct Conversation {
    scheduler::AdapterId adapter = 0;
    std::vector<int32_t> tokens;
    std::optional<size_t> last_turn;  // index of its arrival
  };

  double phase_factor(double time) const {
    const auto phase = static_cast<size_t>(time / config_.seconds * std::size(kLoadPhases));
    return kLoadPhases[std::min(phase, std::size(kLoadPhases) - 1)];
  }

  void make_turns() {
    const double per_second = config_.rate / habits_.turns;
    std::exponential_distribution<double> gap(per_second);
    std::exponential_distribution<double> pause(1 / std::max(1e-9, habits_.pause));
    std::geometric_distribution<int> more(1 / habits_.turns);
    double time = 0;
    while (true) {
      time += gap(random_) / phase_factor(time);
      if (time >= config_.seconds) return;
      const size_t conversation = conversations_.size();
      conversations_.push_back({pick_adapter(time), {}});
      const int turns = 1 + more(random_);
      int length = habits_.prefix;
      double at = time;
      for (int i = 0; i < turns && at < config_.seconds; ++i) {
        const Turn turn{at, conversation, i, length_of(habits_.question),
                        length_of(habits_.answer)};
        length += turn.question + turn.answer;
        if (length > config_.max_tokens) break;
        turns_.push_back(turn);
        at += turn.answer * kSecondsPerToken + pause(random_) + 1;
      }
    }
  }

  // Log-normal, like the lengths of texts.
  int length_of(int mean) {
    constexpr double kSigma = 0.8;
    std::lognormal_distribution<double> length(std::log(mean) - kSigma * kSigma / 2, kSigma);
    return std::clamp(static_cast<int>(length(random_)), 1, 8 * mean);
  }

  scheduler::AdapterId pick_adapter(double time) {
    const int count = config_.adapters;
    switch (config_.popularity) {
      case Popularity::kUniform: return static_cast<int>(random_() % count);
      case Popularity::kDistinct: return next_adapter_++ % count;
      case Popularity::kSkewed: break;
    }
    const double centre = count * time / config_.seconds;
    std::normal_distribution<double> place(centre, config_.spread * count);
    const auto index = static_cast<int>(std::floor(place(random_)));
    return (index % count + count) % count;
  }

  Arrival arrive(const Turn& turn, scheduler::RequestId id) {
    Conversation& conversation = conversations_[turn.conversation];
    std::vector<int32_t>& tokens = conversation.tokens;
    if (turn.number == 0)
      for (int i = 0; i < habits_.prefix; ++i) tokens.push_back(1 + conversation.adapter);
    for (int i = 0; i < turn.question; ++i)
      tokens.push_back(static_cast<int32_t>(1000 + random_() % 1'000'000));
    Arrival arrival{.at = from_seconds(turn.at),
                    .prompt = tokens,
                    .answer_tokens = turn.answer,
                    .adapter = conversation.adapter,
                    .previous = conversation.last_turn};
    conversation.last_turn = id - 1;
    for (int i = 0; i < turn.answer; ++i) tokens.push_back(answer_token(id, i));
    return arrival;
  }

  const ScenarioConfig& config_;
  const Habits habits_;
  std::mt19937 random_;
  std::vector<Conversation> conversations_;
  std::vector<Turn> turns_;
  int next_adapter_ = 0;
};

}  // namespace

std::vector<Arrival> make_scenario(const ScenarioConfig& config) { return Generator(config).run(); }

const char* name_of(Application application) {
  switch (application) {
    case Application::kTranslation: return "translation";
    case Application::kAgent: return "agents";
    case Application::kChat: break;
  }
  return "chat";
}

const char* name_of(Popularity popularity) {
  switch (popularity) {
    case Popularity::kUniform: return "uniform";
    case Popularity::kDistinct: return "distinct";
    case Popularity::kSkewed: break;
  }
  return "skewed";
}

}  // namespace valora::sim
