#include "server/handlers/openapi/schemas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "server/handlers/handlers.h"
#include "server/handlers/streams/streams.h"
#include "server/openai/request_fields.h"

namespace valora::server {
namespace {

struct LoraField {
  const char* name;
  const char* type;
  const char* meaning;
};

constexpr std::array kLoadFields = {
    LoraField{"lora_name", "string", "the name in requests"},
    LoraField{"lora_path", "string", "a folder on the server"},
    LoraField{"load_inplace", "boolean", "the name may exist already; its requests keep the old"},
    LoraField{"pinned", "boolean", "its weights never leave the memory pool"},
    LoraField{"lazy", "boolean", "values are read when a request first needs them"},
    LoraField{"expected_generation", "integer", "409 unless the name has this one; 0: none"},
};

OrderedJson lora_schema(bool load) {
  OrderedJson properties = OrderedJson::object();
  for (const LoraField& field : kLoadFields)
    if (load || field.name == std::string_view("lora_name") ||
        field.name == std::string_view("expected_generation"))
      properties[field.name] = {{"type", field.type}, {"description", field.meaning}};
  OrderedJson required = OrderedJson::array({"lora_name"});
  if (load) required.push_back("lora_path");
  return {{"type", "object"}, {"properties", properties}, {"required", required}};
}

OrderedJson upload_schema() {
  OrderedJson out = lora_schema(true);
  OrderedJson& properties = out["properties"];
  properties.erase("lora_path");
  const OrderedJson file = {
      {"type", "string"}, {"format", "binary"}, {"description", "the file of this name"}};
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors", "valora.json"})
    properties[name] = file;
  out["required"] = {"lora_name", "adapter_config.json", "adapter_model.safetensors"};
  return out;
}

OrderedJson text_field(const char* meaning) {
  return {{"type", "string"}, {"description", meaning}};
}

OrderedJson file_form() {
  OrderedJson file = text_field("the lines of a batch");
  file["format"] = "binary";
  return {{"type", "object"},
          {"properties", {{"purpose", text_field("batch")}, {"file", std::move(file)}}},
          {"required", OrderedJson::array({"purpose", "file"})}};
}

OrderedJson batch_schema() {
  return {
      {"type", "object"},
      {"properties",
       {{"input_file_id", text_field("an uploaded file; its lines have custom_id, method, url, "
                                     "body")},
        {"endpoint", text_field("that the lines ask: /v1/chat/completions, /v1/completions, "
                                "/v1/embeddings or /v1/responses")},
        {"completion_window", text_field("after which rows are given up, such as 24h or 30m; 24h "
                                         "if absent")},
        {"metadata", {{"type", "object"}, {"description", "up to 16 texts, given back"}}}}},
      {"required", OrderedJson::array({"input_file_id", "endpoint"})}};
}

OrderedJson typed_field(const char* type, const char* meaning) {
  return {{"type", type}, {"description", meaning}};
}

OrderedJson skills_field() {
  OrderedJson out = typed_field("array", "names of models, or objects with model (docs/skills.md)");
  out["items"] = OrderedJson::object();
  return out;
}

OrderedJson analyze_schema() {
  return {{"type", "object"},
          {"description", "Other fields are those of a chat, for every skill."},
          {"properties",
           {{"skills", skills_field()},
            {"image", text_field("a URL, or a list of them")},
            {"video", text_field("a URL, or a list of them")},
            {"prompt", text_field("the question of all skills; theirs if absent")},
            {"stream", typed_field("boolean", "send each answer once it is whole")}}},
          {"required", OrderedJson::array({"skills"})}};
}

OrderedJson stream_schema() {
  return {
      {"type", "object"},
      {"description", "Other fields are those of a chat, for every frame (docs/streams.md)."},
      {"properties",
       {{"source", text_field("a URL (rtsp, http, file, v4l2), or push")},
        {"skills", skills_field()},
        {"name", text_field("for people")},
        {"fps", typed_field("number", "most frames per second that are looked at; 1 if absent")},
        {"realtime", typed_field("boolean", "false: a file is read as fast as it is answered")},
        {"key_frames", typed_field("boolean", "only key frames of the source are decoded")},
        {"window", typed_field("object", "frames or seconds that a question is about")},
        {"skip_still",
         {{"description", "leave out frames in which nothing has changed; or threshold, at_most"},
          {"type", OrderedJson::array({"boolean", "object"})}}},
        {"still_blocks",
         {{"description",
           "take blocks in which nothing has changed from the frame before; or threshold, at_most"},
          {"type", OrderedJson::array({"boolean", "object"})}}},
        {"webhook", typed_field("object", "url, secret, answers: where events are sent")},
        {"mqtt",
         {{"description", "whether the server's broker is told; or answers, snapshots"},
          {"type", OrderedJson::array({"boolean", "object"})}}},
        {"paused", typed_field("boolean", "begin later, by resume")}}},
      {"required", OrderedJson::array({"source", "skills"})}};
}

OrderedJson type_of(const OrderedJson& example) {
  if (example.is_boolean()) return "boolean";
  if (example.is_string()) return "string";
  if (example.is_number_integer()) return "integer";
  if (example.is_number()) return "number";
  return example.is_array() ? "array" : "object";
}

OrderedJson field_schema(const RequestField& field) {
  OrderedJson out = OrderedJson::object();
  const auto types = field.entry.find("types");
  out["type"] = types == field.entry.end() ? type_of(field.entry.at("example")) : *types;
  if (out["type"] == "array" ||
      (types != field.entry.end() && field.entry["types"].contains("array")))
    out["items"] = OrderedJson::object();
  out["description"] = field.effect == RequestField::Effect::kHonoured
                           ? field.entry.at("meaning")
                           : OrderedJson("accepted, without effect");
  return out;
}

}  // namespace

OrderedJson body_schema(std::string_view route) {
  if (route == kUploadPath) return upload_schema();
  if (route == kFilesPath) return file_form();
  if (route == kBatchesPath) return batch_schema();
  if (route == "/v1/analyze") return analyze_schema();
  if (route == kStreamsPath) return stream_schema();
  if (route.ends_with("/frames")) return {{"type", "string"}, {"format", "binary"}};
  if (route.ends_with("_lora_adapter")) return lora_schema(route == "/v1/load_lora_adapter");
  const std::vector<RequestField>& fields = request_fields(route);
  OrderedJson out = {{"type", "object"}};
  if (fields.empty()) return out;
  OrderedJson& properties = out["properties"] = OrderedJson::object();
  std::vector<std::string> refused;
  for (const RequestField& field : fields)
    if (field.effect == RequestField::Effect::kRefused)
      refused.push_back(field.name);
    else
      properties[field.name] = field_schema(field);
  if (!refused.empty())
    out["description"] =
        fmt::format("Refused with 400, unless they ask for nothing: {}.", fmt::join(refused, ", "));
  return out;
}

bool takes_body(const Route& route) {
  return route.method == "POST" && !route.open && !route.path.ends_with("/cancel") &&
         !route.path.ends_with("/pause") && !route.path.ends_with("/resume");
}

std::vector<OrderedJson> query_parameters(std::string_view route) {
  std::vector<OrderedJson> out;
  const auto add = [&](const char* name, const char* type, const char* meaning) {
    out.push_back(
        {{"name", name}, {"in", "query"}, {"description", meaning}, {"schema", {{"type", type}}}});
  };
  if (route == "/props")
    add("model", "string", "the base model, which is the default, or an adapter");
  if (route != kFilesPath && route != kBatchesPath && route != kStreamsPath) return out;
  add("limit", "integer", "the most of one answer");
  add("after", "string", "the id behind which the list goes on");
  add("order", "string", "desc, the newest first, or asc");
  if (route == kFilesPath) add("purpose", "string", "batch or batch_output");
  return out;
}

OrderedJson responses_of(const Route& route, bool keys) {
  OrderedJson out = OrderedJson::object();
  const auto add = [&](const char* status, const char* meaning) {
    out[status] = {
        {"description", meaning},
        {"content",
         {{"application/json", {{"schema", {{"$ref", "#/components/schemas/Error"}}}}}}}};
  };
  const bool sends = takes_body(route);
  const bool of_batches =
      route.path.starts_with(kFilesPath) || route.path.starts_with(kBatchesPath);
  const bool of_streams = route.path.starts_with(kStreamsPath);
  const bool changes = route.path.ends_with("_lora_adapter");
  out["200"] = {{"description", "The answer"}};
  if (OrderedJson content = answer_content(route.method, route.path); !content.empty())
    out["200"]["content"] = std::move(content);
  if (sends) add("400", "A field is wrong or not supported; `param` names it");
  if (keys && !route.open) add("401", "The API key is missing or wrong");
  if (of_batches)
    add("403", "The server was started without --batches-dir");
  else if (of_streams)
    add("403", "The server was started without --streams-dir");
  else if (changes)
    add("403", "An option of the server, the key's user or, for uploads, the origin forbids it");
  else if (keys && !route.open)
    add("403", "The key's user may not do this");
  if (changes)
    add("404", "There is no such adapter, or no such folder");
  else if (of_batches)
    add("404", "There is no such file or batch");
  else if (of_streams)
    add("404", "There is no such stream, or frame");
  else if (route.model_work || route.path.ends_with('/') || route.handler == handle_props)
    add("404", "There is no such model");
  if (of_batches && route.method == "DELETE")
    add("409", "A batch that has not ended needs the file");
  if (route.path.ends_with("/cancel")) add("409", "The batch has ended");
  if (changes) add("409", "The name has another generation than `expected_generation`");
  if (sends) {
    add("413", "The body is too large");
    add("415", "The body has another type, or is compressed");
  }
  if (route.model_work) add("429", "Too many requests wait; Retry-After says when to come again");
  if (route.handler == handle_health)
    add("503", "The server loads its model, drains, or its engine does not work");
  else if (route.handler == handle_stats)
    add("503", "Too many clients read the events, or the server loads its model");
  else if (route.model_work)
    add("503", "The server loads its model, drains, or a limit of its memory is reached");
  if (route.path == kUploadPath) add("507", "The folder of uploads is full");
  if (of_streams && route.path.ends_with("/frames"))
    add("409", "The stream reads a source, or is paused");
  if ((of_batches || of_streams) && route.method == "POST")
    add("507", "The disk, or the user's part of it, is full");
  add("default",
      "405: another method; 408: the request came too slowly; 414, 431: its target or its header "
      "is too long; 421: the host is not allowed; 500: a fault of the server");
  return out;
}

}  // namespace valora::server
