#include "server/openai/response_object.h"

#include <fmt/format.h>

namespace valora::server {
namespace {

OrderedJson text_part(const std::string& text, bool thought) {
  if (thought) return {{"type", "reasoning_text"}, {"text", text}};
  return {{"type", "output_text"}, {"text", text}, {"annotations", OrderedJson::array()}};
}

OrderedJson usage_object(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", {{"reasoning_tokens", usage.thought_tokens}}},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

}  // namespace

ResponseWriter::ResponseWriter(AnswerHead head, OrderedJson repeated)
    : head_(std::move(head)), repeated_(std::move(repeated)) {}

void ResponseWriter::event(const char* type, const OrderedJson& fields) {
  OrderedJson json = {{"type", type}, {"sequence_number", sequence_++}};
  json.update(fields);
  events_ += fmt::format("event: {}\ndata: {}\n\n", type, to_text(json));
}

OrderedJson ResponseWriter::place(const Item& item, bool with_content) const {
  OrderedJson out = {{"item_id", item.id}, {"output_index", &item - items_.data()}};
  if (with_content) out["content_index"] = 0;
  return out;
}

void ResponseWriter::begin() {
  event("response.created", {{"response", object()}});
  event("response.in_progress", {{"response", object()}});
}

OrderedJson ResponseWriter::json_of(const Item& item) const {
  const char* type = item.kind == Kind::kCall      ? "function_call"
                     : item.kind == Kind::kThought ? "reasoning"
                                                   : "message";
  OrderedJson out = {{"id", item.id}, {"type", type}, {"status", item.status}};
  if (item.kind == Kind::kCall) {
    out["call_id"] = item.call_id;
    out["name"] = item.name;
    out["arguments"] = item.text;
    return out;
  }
  const bool thought = item.kind == Kind::kThought;
  if (thought)
    out["summary"] = OrderedJson::array();
  else
    out["role"] = "assistant";
  out["content"] = OrderedJson::array();
  if (item.status != "in_progress" || !item.text.empty())
    out["content"].push_back(text_part(item.text, thought));
  return out;
}

ResponseWriter::Item& ResponseWriter::text_item(Kind kind) {
  if (!items_.empty() && items_.back().kind == kind) return items_.back();
  close_last();
  const char* prefix = kind == Kind::kThought ? "rs" : "msg";
  items_.push_back(
      {.id = fmt::format("{}_{}_{}", prefix, head_.id, items_.size()), .kind = kind, .text = {}});
  Item& item = items_.back();
  event("response.output_item.added",
        {{"output_index", items_.size() - 1}, {"item", json_of(item)}});
  OrderedJson part = place(item, true);
  part["part"] = text_part("", kind == Kind::kThought);
  event("response.content_part.added", part);
  return item;
}

void ResponseWriter::add_text(Kind kind, const std::string& text) {
  if (text.empty()) return;
  Item& item = text_item(kind);
  item.text += text;
  OrderedJson delta = place(item, true);
  delta["delta"] = text;
  if (kind == Kind::kThought) return event("response.reasoning_text.delta", delta);
  delta["logprobs"] = OrderedJson::array();
  event("response.output_text.delta", delta);
}

void ResponseWriter::open_call(const AnswerCallDelta& call) {
  close_last();
  items_.push_back({.id = fmt::format("fc_{}_{}", head_.id, items_.size()),
                    .kind = Kind::kCall,
                    .text = {},
                    .call_id = call.id,
                    .name = *call.name});
  event("response.output_item.added",
        {{"output_index", items_.size() - 1}, {"item", json_of(items_.back())}});
}

void ResponseWriter::add(const std::string& thought, const std::string& text,
                         const std::vector<AnswerCallDelta>& calls) {
  add_text(Kind::kThought, thought);
  add_text(Kind::kMessage, text);
  for (const AnswerCallDelta& call : calls) {
    if (call.name) open_call(call);
    if (call.arguments.empty()) continue;
    Item& item = items_.back();
    item.text += call.arguments;
    OrderedJson delta = place(item, false);
    delta["delta"] = call.arguments;
    event("response.function_call_arguments.delta", delta);
  }
}

void ResponseWriter::close_last() {
  if (!items_.empty()) close(items_.size() - 1, "completed");
}

void ResponseWriter::close(size_t index, const char* status) {
  Item& item = items_[index];
  item.status = status;
  OrderedJson done = place(item, item.kind != Kind::kCall);
  if (item.kind == Kind::kCall) {
    done["name"] = item.name;
    done["arguments"] = item.text;
    event("response.function_call_arguments.done", done);
  } else {
    const bool thought = item.kind == Kind::kThought;
    OrderedJson part = done;
    done["text"] = item.text;
    if (!thought) done["logprobs"] = OrderedJson::array();
    event(thought ? "response.reasoning_text.done" : "response.output_text.done", done);
    part["part"] = text_part(item.text, thought);
    event("response.content_part.done", part);
  }
  event("response.output_item.done", {{"output_index", index}, {"item", json_of(item)}});
}

void ResponseWriter::finish(const Finish& finish, const Usage& usage) {
  if (items_.empty()) text_item(Kind::kMessage);
  status_ = finish.reason == FinishReason::kStop ? "completed" : "incomplete";
  close(items_.size() - 1, status_.c_str());
  usage_ = usage;
  event(status_ == "completed" ? "response.completed" : "response.incomplete",
        {{"response", object()}});
}

void ResponseWriter::fail(const OrderedJson& error) {
  event("error", {{"code", error.value("type", "")},
                  {"message", error.value("message", "")},
                  {"param", error.value("param", OrderedJson())}});
}

OrderedJson ResponseWriter::object() const {
  OrderedJson out = {{"id", head_.id},    {"object", "response"}, {"created_at", head_.created},
                     {"status", status_}, {"error", nullptr},     {"incomplete_details", nullptr}};
  if (status_ == "incomplete") out["incomplete_details"] = {{"reason", "max_output_tokens"}};
  out["model"] = head_.model;
  out["output"] = OrderedJson::array();
  for (const Item& item : items_) out["output"].push_back(json_of(item));
  out.update(repeated_);
  out["usage"] = usage_ ? usage_object(*usage_) : OrderedJson();
  return out;
}

}  // namespace valora::server
