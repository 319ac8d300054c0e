// Requests of applications with many adapters, as FastLibra §6.2 describes them: chats with
// histories, one-shot translations, and agents with long shared prefixes. Deterministic by seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/simulation.h"

namespace valora::sim {

enum class Application : uint8_t { kChat, kTranslation, kAgent };
// How often each adapter is asked for. kUniform: all equally. kDistinct: in turn. kSkewed: by a
// normal distribution over the adapters, whose centre moves with the phases of the load.
enum class Popularity : uint8_t { kUniform, kDistinct, kSkewed };

struct ScenarioConfig {
  Application application = Application::kChat;
  Popularity popularity = Popularity::kSkewed;
  int adapters = 20;
  double rate = 1;  // mean requests per second
  double seconds = 600;
  double spread = 0.15;   // of kSkewed: standard deviation, as a share of the adapters
  int max_tokens = 4096;  // of a conversation; it ends before
  uint32_t seed = 1;
};

// In order of time. Do not change the ids that simulate() gives: a later turn's prompt holds the
// answers of the earlier ones.
std::vector<Arrival> make_scenario(const ScenarioConfig& config);

// The load over time, as factors of the mean rate for equal parts of the time.
inline constexpr double kLoadPhases[] = {0.5, 1.0, 1.6, 0.9};

const char* name_of(Application application);
const char* name_of(Popularity popularity);

}  // namespace valora::sim
