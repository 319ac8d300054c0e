// State that all handlers share: the options, the engine, the metrics and the served model names.
// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/engine.h"
#include "base/clock.h"
#include "base/result.h"
#include "server/applications/applications.h"
#include "server/handlers/generation/answer_budget.h"
#include "server/handlers/generation/waiting_choices.h"
#include "server/http/http.h"
#include "server/metrics/metrics.h"
#include "server/openai/requests.h"
#include "server/server.h"
#include "server/uploads/upload_store.h"
#include "server/users/users.h"
#include "streams/mqtt/mqtt_output.h"

namespace valora::server {

class AdapterResolver;
class BatchRunner;
class StatsTicker;

class Service {
 public:
  // `engine` and `clock` must outlive this object.
  Service(ServerOptions options, Engine& engine, const Clock& clock = real_clock());
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const ServerOptions options;
  Engine& engine;
  const std::vector<std::string> base_names;  // the first is used in answers and metrics
  Metrics metrics;
  const Applications applications;
  const Users users;
  const std::shared_ptr<AdapterResolver> resolver;
  std::atomic<bool> draining{false};
  WaitingChoices waiting;
  AnswerBudget answers;
  std::atomic<int> load{0};  // running requests that use the model
  const std::unique_ptr<StatsTicker> ticker;
  UploadStore uploads;
  // Set before requests come, and valid until the last one is handled; null: batches are off.
  BatchRunner* batches = nullptr;
  // The same; null: streams are off.
  streams::StreamSet* streams = nullptr;
  // Where they are published; null: nowhere.
  const streams::MqttOutput* mqtt = nullptr;

  const std::string& base_name() const { return base_names.front(); }
  bool is_base(std::string_view model) const;
  // The adapter in `model`, which is "adapter" or "base:adapter"; the exact name of a loaded
  // adapter takes precedence. Empty for the base model.
  std::string_view adapter_of(std::string_view model) const;
  // All adapters of a target: the default one, or the one in `model` followed by those in `lora`.
  // If both name the same adapter, the scale in `lora` applies.
  std::vector<AdapterUse> adapters_of(const Target& target) const;
  // authorized(): the request has a valid API key, or none is required. user_of(): the key's user;
  // null if the key has none.
  bool authorized(const HttpRequest& request) const;
  ServedUser* user_of(const HttpRequest& request) const;
  // The value of GenerateRequest::client: address and API key.
  std::string client_of(const HttpRequest& request) const;
  // The style of tool calls in answers: that of the options or, by default, the model's.
  ToolCallStyle tool_call_style() const {
    return options.tool_call_style.value_or(engine.model().tool_calls);
  }
  RequestLimits request_limits(const HttpRequest& request) const;
  // The answer's "model" field: the base model's first name, or an adapter's name as the client
  // sent it.
  std::string model_name_of(const Target& target) const;
};

using ServiceHandler = void (*)(const std::shared_ptr<Service>&, HttpRequest,
                                std::shared_ptr<Exchange>);

}  // namespace valora::server
