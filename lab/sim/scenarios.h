// Requests of applications with many adapters, as described in FastLibra §6.2: chats with
// histories, one-shot translations, and agents with long shared prefixes. Deterministic for a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/sim/simulation.h"

namespace valora::sim {

enum class Application : uint8_t { kChat, kTranslation, kAgent };
// How often each adapter is requested. kUniform: all equally. kDistinct: in turn. kSkewed: by a
// normal distribution over the adapters whose centre moves with the load phases.
enum class Popularity : uint8_t { kUniform, kDistinct, kSkewed };

struct ScenarioConfig {
  Application application = Application::kChat;
  Popularity popularity = Popularity::kSkewed;
  int adapters = 20;
  double rate = 1;  // mean requests per second
  double seconds = 600;
  double spread = 0.15;   // kSkewed: standard deviation as a share of the adapters
  int max_tokens = 4096;  // limit of a conversation, which ends before it
  uint32_t seed = 1;
};

// In order of time. Do not change the ids assigned by simulate(): a later turn's prompt contains
// the answers of earlier turns.
std::vector<Arrival> make_scenario(const ScenarioConfig& config);

// The load over time: factors of the mean rate, each for an equal part of the time.
inline constexpr double kLoadPhases[] = {0.5, 1.0, 1.6, 0.9};

const char* name_of(Application application);
const char* name_of(Popularity popularity);

}  // namespace valora::sim
