#include "server/handlers/ollama/ollama.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "server/handlers/adapters/default_adapter.h"
#include "server/handlers/caller.h"
#include "server/handlers/generation/generation.h"
#include "server/handlers/generation/generation_answer.h"
#include "server/handlers/pooled/embeddings.h"
#include "server/handlers/viewer.h"
#include "server/ollama/ollama_body.h"
#include "server/openai/errors.h"
#include "server/openai/fields.h"
#include "server/openai/json_text.h"
#include "server/openai/requests.h"
#include "server/openai/responses.h"

namespace valora::server::ollama {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

std::string time_text(std::time_t at) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(at));
}

void refuse(Exchange& exchange, const Error& error) {
  exchange.respond(plain_error(error_response(error)));
}

enum class Form { kChat, kGenerate };

OrderedJson tokens_json(const std::vector<TokenOutput>& tokens) {
  OrderedJson out = OrderedJson::array();
  const OrderedJson logprobs = chat_logprobs(tokens);
  for (const OrderedJson& token : logprobs.at("content")) out.push_back(token);
  return out;
}

class OllamaAnswer final : public GenerationAnswer {
 public:
  OllamaAnswer(std::shared_ptr<Service> service, std::shared_ptr<Exchange> exchange,
               AnswerHead head, const OllamaBody& body, Form form)
      : GenerationAnswer(std::move(service), std::move(exchange), std::move(head), body.body),
        form_(form),
        stream_(body.stream) {}

 private:
  void on_part(int, ChoicePart part) override {
    if (first_ == steady_clock::time_point()) first_ = steady_clock::now();
    if (part.chunk.finish) finish_ = part.chunk.finish->reason;
    add_calls(part);
    text_ += part.chunk.text;
    thought_ += part.chunk.thought;
    if (options_.logprobs)
      std::move(part.chunk.tokens.begin(), part.chunk.tokens.end(), std::back_inserter(tokens_));
    if (!stream_) {
      if (!keep(text_bytes(part))) return;
    } else if (!text_.empty() || !thought_.empty()) {
      write_line(line(false));
    }
  }

  // Calls are sent whole, with the last line, since arguments are objects here.
  void add_calls(ChoicePart& part) {
    for (AnswerCallDelta& call : part.calls) {
      if (call.name) calls_.emplace_back(std::move(*call.name), std::string());
      calls_.back().second += call.arguments;
    }
  }

  OrderedJson line(bool done) {
    OrderedJson out = OrderedJson::object();
    out["model"] = head_.model;
    out["created_at"] = time_text(std::time(nullptr));
    const std::string text = std::exchange(text_, {}), thought = std::exchange(thought_, {});
    if (form_ == Form::kChat) {
      OrderedJson& message = out["message"] = {{"role", "assistant"}, {"content", text}};
      if (!thought.empty()) message["thinking"] = thought;
      if (OrderedJson calls = done ? calls_json() : OrderedJson(); !calls.empty())
        message["tool_calls"] = std::move(calls);
    } else {
      out["response"] = text;
      if (!thought.empty()) out["thinking"] = thought;
    }
    if (options_.logprobs && !tokens_.empty())
      out["logprobs"] = tokens_json(std::exchange(tokens_, {}));
    out["done"] = done;
    return out;
  }

  // Without one that was cut off, which programs would execute with fewer arguments.
  OrderedJson calls_json() const {
    OrderedJson out = OrderedJson::array();
    for (const auto& [name, arguments] : calls_)
      if (parse_json(arguments, "arguments").ok())
        out.push_back(
            {{"function", {{"name", name}, {"arguments", OrderedJson::parse(arguments)}}}});
    return out;
  }

  void on_all_finished() override {
    const auto end = steady_clock::now();
    OrderedJson last = line(true);
    last["done_reason"] = finish_ == FinishReason::kLength ? "length" : "stop";
    const auto ns = [](steady_clock::duration d) {
      return std::chrono::duration_cast<nanoseconds>(d).count();
    };
    last["total_duration"] = ns(end - begin_);
    last["load_duration"] = 0;
    last["prompt_eval_count"] = usage().prompt_tokens;
    last["prompt_eval_duration"] = ns(first_ - begin_);
    last["eval_count"] = usage().completion_tokens;
    last["eval_duration"] = ns(end - first_);
    if (!stream_) return exchange_->respond({.body = to_text(last)});
    write_line(last);
    exchange_->end_stream();
  }

  void on_failed(const Error& error) override {
    if (!begun_) return refuse(*exchange_, error);
    exchange_->write(to_text({{"error", error.message}}) + "\n");
    exchange_->end_stream();
  }

  // The HTTP status is not sent before the first line, so it can still report an error.
  void write_line(const OrderedJson& json) {
    if (!std::exchange(begun_, true))
      exchange_->begin_stream({.content_type = "application/x-ndjson"});
    exchange_->write(to_text(json) + "\n");
  }

  const Form form_;
  const bool stream_;
  const steady_clock::time_point begin_ = steady_clock::now();
  steady_clock::time_point first_;
  std::string text_, thought_;  // not written yet
  std::vector<TokenOutput> tokens_;
  std::vector<std::pair<std::string, std::string>> calls_;  // name, arguments
  FinishReason finish_ = FinishReason::kStop;
  bool begun_ = false;
};

void answer(const std::shared_ptr<Service>& service, const HttpRequest& request,
            std::shared_ptr<Exchange> exchange, Result<OllamaBody> parsed, Form form) {
  if (!parsed.ok()) return refuse(*exchange, parsed.error());
  GenerationBody& body = parsed->body;
  set_default_adapter(*service, body);
  const auto caller = caller_of(*service, request, body.target, body.sharing);
  if (!caller.ok()) return exchange->respond(plain_error(refuse_caller(caller.error())));
  AnswerHead head{request.id, std::time(nullptr), service->model_name_of(body.target)};
  if (parsed->loads)
    return exchange->respond({.body = to_text({{"model", head.model},
                                               {"created_at", time_text(head.created)},
                                               {"response", ""},
                                               {"done", true},
                                               {"done_reason", "load"}})});
  const auto made =
      std::make_shared<OllamaAnswer>(service, std::move(exchange), std::move(head), *parsed, form);
  start_generation(*service, request, std::move(body), *caller, *made);
}

// ---- models ----

OrderedJson details_of(const ModelCard& model) {
  return {{"parent_model", ""},
          {"format", "safetensors"},
          {"family", model.architecture},
          {"families", OrderedJson::array({model.architecture})},
          {"parameter_size", fmt::format("{:.1f}B", static_cast<double>(model.parameters) / 1e9)},
          {"quantization_level", model.dtype}};
}

OrderedJson tag(const std::string& name, std::time_t created, size_t bytes,
                const std::string& digest, const ModelCard& model) {
  return {{"name", name},  {"model", name},    {"modified_at", time_text(created)},
          {"size", bytes}, {"digest", digest}, {"details", details_of(model)}};
}

}  // namespace

HttpResponse plain_error(HttpResponse response) {
  const auto parsed = parse_json(response.body, "an error");
  if (parsed.ok() && parsed->contains("error") && (*parsed)["error"].is_object())
    response.body = to_text({{"error", (*parsed)["error"].value("message", "")}});
  return response;
}

void handle_chat(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange) {
  auto body = parse_ollama_chat(request.body, service->request_limits(request));
  answer(service, request, std::move(exchange), std::move(body), Form::kChat);
}

void handle_generate(const std::shared_ptr<Service>& service, HttpRequest request,
                     std::shared_ptr<Exchange> exchange) {
  auto body = parse_ollama_generate(request.body, service->request_limits(request));
  answer(service, request, std::move(exchange), std::move(body), Form::kGenerate);
}

namespace {

// Rewrites the answer of /v1/embeddings.
class EmbedExchange final : public Exchange {
 public:
  EmbedExchange(std::shared_ptr<Exchange> to, std::string model, bool older)
      : to_(std::move(to)), model_(std::move(model)), older_(older) {}

  void respond(HttpResponse response) override {
    if (response.status != 200) return to_->respond(plain_error(std::move(response)));
    const auto answered = OrderedJson::parse(response.body);
    OrderedJson vectors = OrderedJson::array();
    for (const OrderedJson& item : answered.at("data")) vectors.push_back(item.at("embedding"));
    if (older_) return to_->respond({.body = to_text({{"embedding", vectors.at(0)}})});
    const auto spent = std::chrono::duration_cast<nanoseconds>(steady_clock::now() - begin_);
    to_->respond(
        {.body = to_text({{"model", model_},
                          {"embeddings", std::move(vectors)},
                          {"total_duration", spent.count()},
                          {"load_duration", 0},
                          {"prompt_eval_count", answered.at("usage").at("prompt_tokens")}})});
  }
  void post(std::function<void()> work) override { to_->post(std::move(work)); }
  void begin_stream(HttpResponse head) override { to_->begin_stream(std::move(head)); }
  void write(std::string bytes) override { to_->write(std::move(bytes)); }
  void end_stream() override { to_->end_stream(); }
  void release_body() override { to_->release_body(); }
  void abort() override { to_->abort(); }
  void on_disconnect(std::function<void()> left) override { to_->on_disconnect(std::move(left)); }

 private:
  const std::shared_ptr<Exchange> to_;
  const std::string model_;
  const bool older_;
  const steady_clock::time_point begin_ = steady_clock::now();
};

}  // namespace

void handle_embed(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange) {
  auto body = embed_body_of_ollama(request.body);
  if (!body.ok()) return refuse(*exchange, body.error());
  const bool older = request.path == "/api/embeddings";
  const std::string model = OrderedJson::parse(*body).at("model");
  request.body = std::move(*body);
  handle_embeddings(service, std::move(request),
                    std::make_shared<EmbedExchange>(std::move(exchange), model, older));
}

void handle_tags(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange) {
  const Viewer viewer(*service, request);
  const ModelCard& model = service->engine.model();
  OrderedJson models = OrderedJson::array();
  if (viewer.may_ask(service->base_name()))
    for (const std::string& name : service->base_names)
      models.push_back(tag(name, model.created, model.weight_bytes, "", model));
  for (const AdapterCard& adapter : service->engine.adapters())
    if (viewer.may_ask(adapter.name))
      models.push_back(
          tag(adapter.name, adapter.created, adapter.bytes, adapter.digest.hex(), model));
  exchange->respond({.body = to_text({{"models", std::move(models)}})});
}

void handle_show(const std::shared_ptr<Service>& service, HttpRequest request,
                 std::shared_ptr<Exchange> exchange) {
  const auto body = parse_body(request.body);
  if (!body.ok()) return refuse(*exchange, body.error());
  const Json& named = member(*body, member(*body, "model").is_null() ? "name" : "model");
  if (!named.is_string()) return refuse(*exchange, invalid("\"model\" must be a string", "model"));
  const std::string name = without_latest(named.get<std::string>());
  const Viewer viewer(*service, request);
  if (!viewer.knows(name)) return refuse(*exchange, model_not_found(name));
  const ModelCard& model = service->engine.model();
  OrderedJson capabilities = OrderedJson::array({"completion", "tools", "embedding"});
  if (model.images) capabilities.push_back("vision");
  OrderedJson info = OrderedJson::object();
  info["general.architecture"] = model.architecture;
  info["general.parameter_count"] = model.parameters;
  info[model.architecture + ".context_length"] = model.max_model_len;
  info[model.architecture + ".embedding_length"] = model.embedding_size;
  exchange->respond({.body = to_text({{"modelfile", ""},
                                      {"parameters", ""},
                                      {"template", ""},
                                      {"details", details_of(model)},
                                      {"model_info", std::move(info)},
                                      {"capabilities", std::move(capabilities)},
                                      {"modified_at", time_text(model.created)}})});
}

void handle_version(const std::shared_ptr<Service>&, HttpRequest,
                    std::shared_ptr<Exchange> exchange) {
  exchange->respond({.body = to_text({{"version", VALORA_VERSION}})});
}

}  // namespace valora::server::ollama
