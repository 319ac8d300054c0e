#include "server/ollama/ollama_body.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/json/parse_ordered.h"
#include "server/openai/fields.h"
#include "server/openai/json_text.h"

namespace valora::server::ollama {
namespace {

struct Renamed {
  const char *ollama, *openai;
};
constexpr std::array kOptions = {
    Renamed{"temperature", "temperature"},
    Renamed{"top_p", "top_p"},
    Renamed{"top_k", "top_k"},
    Renamed{"min_p", "min_p"},
    Renamed{"seed", "seed"},
    Renamed{"stop", "stop"},
    Renamed{"repeat_penalty", "repetition_penalty"},
    Renamed{"presence_penalty", "presence_penalty"},
    Renamed{"frequency_penalty", "frequency_penalty"},
};
constexpr std::array kRenamed = {
    Renamed{"repeat_penalty", "repetition_penalty"}, Renamed{"options.num_predict", "max_tokens"},
    Renamed{"format", "response_format"}, Renamed{"think", "reasoning_effort"}};

// Samplers that this server does not have; these values switch them off.
struct Off {
  const char* option;
  double value;
};
constexpr std::array kSamplers = {Off{"mirostat", 0}, Off{"tfs_z", 1}, Off{"typical_p", 1}};

OrderedJson field_of(const OrderedJson& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? OrderedJson() : *found;
}

// Clients send these for fields that they do not use.
bool is_blank(const OrderedJson& value) {
  return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         (value.is_array() && value.empty());
}

Error in_ollama(Error error) {
  for (const Renamed& name : kRenamed)
    if (error.param == name.openai) error.param = name.ollama;
  return error;
}

Status set_options(const OrderedJson& from, OrderedJson& to) {
  const auto options = from.find("options");
  if (options == from.end() || options->is_null()) return {};
  if (!options->is_object()) return invalid("\"options\" must be an object", "options");
  for (const Renamed& name : kOptions)
    if (const auto value = options->find(name.ollama); value != options->end())
      to[name.openai] = *value;
  for (const Off& off : kSamplers)
    if (const auto value = options->find(off.option);
        value != options->end() && value->is_number() && value->get<double>() != off.value)
      return not_implemented(
          fmt::format("\"options.{}\" other than {} is not supported by this server", off.option,
                      off.value),
          "options");
  const auto most = options->find("num_predict");
  if (most == options->end() || most->is_null()) return {};
  if (!most->is_number_integer())
    return invalid("\"options.num_predict\" must be an integer", "options");
  if (*most > 0) to["max_tokens"] = *most;  // -1 and -2: as many as fit
  return {};
}

Status set_format(const OrderedJson& from, OrderedJson& to) {
  const auto format = from.find("format");
  if (format == from.end() || is_blank(*format)) return {};
  if (*format == "json") {
    to["response_format"] = {{"type", "json_object"}};
    return {};
  }
  if (!format->is_object())
    return invalid("\"format\" must be \"json\" or a JSON schema", "format");
  to["response_format"] = {{"type", "json_schema"},
                           {"json_schema", {{"name", "format"}, {"schema", *format}}}};
  return {};
}

Status set_thinking(const OrderedJson& from, OrderedJson& to) {
  const auto think = from.find("think");
  if (think == from.end() || think->is_null()) return {};
  if (think->is_boolean()) {
    to["enable_thinking"] = *think;
    return {};
  }
  if (!think->is_string())
    return invalid("\"think\" must be a boolean, or low, medium or high", "think");
  to["reasoning_effort"] = *think;
  return {};
}

// The fields that both endpoints have.
Status set_common(const OrderedJson& from, OrderedJson& to) {
  const auto model = from.find("model");
  if (model == from.end() || !model->is_string())
    return invalid("\"model\" must be a string", "model");
  to["model"] = without_latest(model->get<std::string>());
  VALORA_CHECK(set_options(from, to));
  VALORA_CHECK(set_format(from, to));
  VALORA_CHECK(set_thinking(from, to));
  for (const char* field : {"logprobs", "top_logprobs"})
    if (const auto value = from.find(field); value != from.end() && !value->is_null())
      to[field] = *value;
  return {};
}

// Base64 as Ollama sends it, without the type of the picture, which its bytes tell.
Status add_pictures(const OrderedJson& images, const std::string& path, OrderedJson& parts) {
  if (images.is_null()) return {};
  if (!images.is_array()) return invalid(fmt::format("\"{}\" must be a list", path), path);
  for (const OrderedJson& image : images) {
    if (!image.is_string())
      return invalid(fmt::format("\"{}\" must be a list of pictures in base64", path), path);
    const auto& data = image.get_ref<const std::string&>();
    const std::string url = data.starts_with("data:") ? data : "data:image/png;base64," + data;
    parts.push_back({{"type", "image_url"}, {"image_url", {{"url", url}}}});
  }
  return {};
}

Result<OrderedJson> content_of(const OrderedJson& text, const OrderedJson& images,
                               const std::string& path) {
  OrderedJson parts = OrderedJson::array();
  VALORA_CHECK(add_pictures(images, path, parts));
  if (parts.empty()) return text.is_null() ? OrderedJson("") : text;
  if (text.is_string() && !is_blank(text)) parts.push_back({{"type", "text"}, {"text", text}});
  return parts;
}

// Arguments are objects there and texts here.
OrderedJson calls_of(const OrderedJson& calls, const std::string& path) {
  OrderedJson out = OrderedJson::array();
  for (const OrderedJson& call : calls) {
    OrderedJson one = call;
    if (one.is_object() && one.contains("function") && one["function"].is_object() &&
        one["function"].contains("arguments"))
      one["function"]["arguments"] = to_text(one["function"]["arguments"]);
    one["id"] = fmt::format("{}-{}", path, out.size());
    one["type"] = "function";
    out.push_back(std::move(one));
  }
  return out;
}

Result<OrderedJson> message_of(const OrderedJson& message, const std::string& path) {
  if (!message.is_object()) return invalid(fmt::format("\"{}\" must be an object", path), path);
  OrderedJson out = OrderedJson::object();
  out["role"] = field_of(message, "role");
  VALORA_TRY(content, content_of(field_of(message, "content"), field_of(message, "images"),
                                 path + ".images"));
  out["content"] = std::move(content);
  if (const OrderedJson calls = field_of(message, "tool_calls"); calls.is_array() && !calls.empty())
    out["tool_calls"] = calls_of(calls, path);
  if (const OrderedJson name = field_of(message, "tool_name"); !name.is_null()) out["name"] = name;
  if (const OrderedJson thought = field_of(message, "thinking"); !thought.is_null())
    out["reasoning_content"] = thought;
  return out;
}

// Ollama's booleans may be null.
Result<bool> boolean(const OrderedJson& body, const char* key, bool fallback) {
  const OrderedJson value = field_of(body, key);
  if (value.is_null()) return fallback;
  if (!value.is_boolean()) return invalid(fmt::format("\"{}\" must be a boolean", key), key);
  return value.get<bool>();
}

// The body with these OpenAI fields.
Result<OllamaBody> finished(Result<GenerationBody> parsed, const OrderedJson& body) {
  OllamaBody out;
  VALORA_TRY(stream, boolean(body, "stream", true));
  out.stream = stream;
  if (!parsed.ok()) return in_ollama(parsed.error());
  out.body = std::move(*parsed);
  return out;
}

// A body that only has the model loaded.
OllamaBody load_of(const OrderedJson& chat) {
  OllamaBody out{.loads = true};
  out.body.target.model = chat["model"];
  return out;
}

Result<OrderedJson> body_of(std::string_view text) {
  VALORA_CHECK(parse_body(text).ok() ? Status() : Status(parse_body(text).error()));
  return parse_ordered(text);
}

}  // namespace

std::string without_latest(std::string name) {
  constexpr std::string_view kTag = ":latest";
  if (name.ends_with(kTag)) name.resize(name.size() - kTag.size());
  return name;
}

Result<OllamaBody> parse_ollama_chat(std::string_view text, const RequestLimits& limits) {
  VALORA_TRY(body, body_of(text));
  OrderedJson chat = OrderedJson::object();
  VALORA_CHECK(set_common(body, chat));
  const OrderedJson messages = field_of(body, "messages");
  if (!messages.is_null() && !messages.is_array())
    return invalid("\"messages\" must be a list", "messages");
  if (messages.empty()) return load_of(chat);
  chat["messages"] = OrderedJson::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    VALORA_TRY(message, message_of(messages[i], fmt::format("messages[{}]", i)));
    chat["messages"].push_back(std::move(message));
  }
  if (const OrderedJson tools = field_of(body, "tools"); !tools.is_null()) chat["tools"] = tools;
  return finished(parse_chat(to_text(chat), limits), body);
}

Result<OllamaBody> parse_ollama_generate(std::string_view text, const RequestLimits& limits) {
  VALORA_TRY(body, body_of(text));
  OrderedJson chat = OrderedJson::object();
  VALORA_CHECK(set_common(body, chat));
  for (const char* field : {"suffix", "template", "context"})
    if (!is_blank(field_of(body, field)))
      return not_implemented(
          fmt::format("\"{}\" is not supported by this server; send the conversation to /api/chat",
                      field),
          field);
  const OrderedJson prompt = field_of(body, "prompt");
  if (!prompt.is_null() && !prompt.is_string())
    return invalid("\"prompt\" must be a string", "prompt");
  if (is_blank(prompt)) return load_of(chat);
  VALORA_TRY(raw, boolean(body, "raw", false));
  if (raw) {
    chat["prompt"] = prompt;
    const bool bounded = chat.contains("max_tokens");
    VALORA_TRY(out, finished(parse_completion(to_text(chat), limits), body));
    if (!bounded) out.body.sampling.max_tokens.reset();
    return out;
  }
  chat["messages"] = OrderedJson::array();
  if (const OrderedJson system = field_of(body, "system"); system.is_string() && !is_blank(system))
    chat["messages"].push_back({{"role", "system"}, {"content", system}});
  VALORA_TRY(content, content_of(prompt, field_of(body, "images"), "images"));
  chat["messages"].push_back({{"role", "user"}, {"content", std::move(content)}});
  return finished(parse_chat(to_text(chat), limits), body);
}

Result<std::string> embed_body_of_ollama(std::string_view text) {
  VALORA_TRY(body, body_of(text));
  OrderedJson out = OrderedJson::object();
  const OrderedJson model = field_of(body, "model");
  if (!model.is_string()) return invalid("\"model\" must be a string", "model");
  out["model"] = without_latest(model.get<std::string>());
  out["input"] = body.contains("prompt") ? body["prompt"] : field_of(body, "input");
  if (const OrderedJson size = field_of(body, "dimensions"); !size.is_null() && size != 0)
    out["dimensions"] = size;
  return to_text(out);
}

}  // namespace valora::server::ollama
