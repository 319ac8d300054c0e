#include "cli/prove_adapters.h"

#include <algorithm>
#include <cmath>

#include "api/waiting_calls.h"
#include "base/text/base64.h"
#include "cli/end_engine.h"
#include "engine/start/start_engine.h"

namespace valora::cli {
namespace {

constexpr double kRounding = 1e-6;  // of log probabilities that are computed twice
constexpr int kAnswerTokens = 16;
constexpr int kSide = 224;  // pixels of the picture

void put_number(std::string& out, uint32_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(number >> (8 * i)));
}

// A disc on a background that changes along both axes, as a BMP file.
std::string picture() {
  constexpr uint32_t kHeader = 54, kPixels = 3 * kSide * kSide;
  std::string out = "BM";
  for (const uint32_t number :
       {kHeader + kPixels, 0u, kHeader, 40u, uint32_t{kSide}, uint32_t{kSide}})
    put_number(out, number, 4);
  put_number(out, 1, 2);   // planes
  put_number(out, 24, 2);  // bits of a pixel
  for (const uint32_t number : {0u, kPixels, 0u, 0u, 0u, 0u}) put_number(out, number, 4);
  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x) {
      const int dx = x - 90, dy = y - 130;
      const bool disc = dx * dx + dy * dy < 50 * 50;
      for (const int value : {disc ? 30 : x, disc ? 40 : 255 - y, disc ? 220 : (x + y) / 2})
        out.push_back(static_cast<char>(value));
    }
  return out;
}

// The invocation of an activated adapter as text; empty for others, which always act.
Result<std::string> invocation_of(const Engine& engine, const AdapterReport& adapter) {
  if (adapter.spec->invocation.empty()) return std::string();
  return engine.detokenize(adapter.spec->invocation);
}

std::vector<GenerateRequest> requests_of(const Engine& engine, const std::string& adapter,
                                         const std::string& invocation) {
  SamplingParams sampling;
  sampling.max_tokens = kAnswerTokens;
  sampling.temperature = 0;
  sampling.prompt_logprobs = 0;
  std::vector<GenerateRequest> requests;
  const auto add = [&](std::vector<ContentPart> parts) {
    GenerateRequest request;
    request.prompt = ChatPrompt{{{"user", std::move(parts)}}};
    request.sampling = sampling;
    request.head = "lm";
    if (!adapter.empty()) request.adapters = {{adapter}};
    requests.push_back(std::move(request));
  };
  add({"Name three colors and one animal." + invocation});
  if (engine.model().images)
    add({MediaRef{MediaRef::Kind::kImage, "data:image/bmp;base64," + encode_base64(picture())},
         "What do you see?" + invocation});
  return requests;
}

Result<std::vector<generator::EngineAnswer>> ask(Engine& engine, const std::string& adapter,
                                                 const std::string& invocation) {
  const std::vector<GenerateRequest> made = requests_of(engine, adapter, invocation);
  generator::EngineRequests requests;
  requests.count = static_cast<int>(made.size());
  requests.concurrency = 1;
  requests.make = [&](int i) { return Result<GenerateRequest>(made[static_cast<size_t>(i)]); };
  requests.name = [&](int i) { return std::string(i == 0 ? "a text" : "a picture"); };
  return generator::ask_all(engine, requests);
}

}  // namespace

double ProvedPrompt::mean_difference() const {
  double sum = 0;
  for (size_t i = 0; i < with.size(); ++i) sum += std::abs(double{with[i]} - without[i]);
  return with.empty() ? 0 : sum / static_cast<double>(with.size());
}

double ProvedPrompt::largest_difference() const {
  double most = 0;
  for (size_t i = 0; i < with.size(); ++i)
    most = std::max(most, std::abs(double{with[i]} - without[i]));
  return most;
}

bool AdapterProof::changes_answers() const {
  return std::ranges::any_of(prompts, [](const ProvedPrompt& prompt) {
    return prompt.largest_difference() > kRounding || prompt.answer != prompt.adapted_answer;
  });
}

Result<std::unique_ptr<AdapterProver>> AdapterProver::start(const EngineOptions& options) {
  VALORA_TRY(engine, start_engine(options));
  return std::unique_ptr<AdapterProver>(new AdapterProver(std::move(engine)));
}

AdapterProver::~AdapterProver() { end_engine(std::move(engine_), 0); }

Result<const AdapterProver::Answers*> AdapterProver::without_adapter(
    const std::string& invocation) {
  const auto known = without_.find(invocation);
  if (known != without_.end()) return &known->second;
  VALORA_TRY(answers, ask(*engine_, "", invocation));
  return &without_.emplace(invocation, std::move(answers)).first->second;
}

Result<AdapterProof> AdapterProver::prove(const AdapterReport& report) {
  AdapterProof proof;
  VALORA_TRY(norms, norms_of(report));
  proof.norms = std::move(norms);
  VALORA_TRY(card, load_adapter_sync(*engine_, {.name = report.path, .path = report.path}));
  const auto measured = [&]() -> Status {
    VALORA_TRY(invocation, invocation_of(*engine_, report));
    VALORA_TRY(base, without_adapter(invocation));
    const Answers& without = *base;
    VALORA_TRY(with, ask(*engine_, card.name, invocation));
    for (size_t i = 0; i < with.size(); ++i)
      proof.prompts.push_back({i == 0 ? "a text" : "a picture", without[i].prompt_logprobs,
                               std::move(with[i].prompt_logprobs), without[i].text,
                               std::move(with[i].text)});
    return {};
  }();
  VALORA_CHECK(unload_adapter_sync(*engine_, card.name));
  VALORA_CHECK(measured);
  return proof;
}

}  // namespace valora::cli
