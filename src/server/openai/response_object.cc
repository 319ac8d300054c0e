#include "server/openai/response_object.h"

#include <fmt/format.h>

namespace valora::server {
namespace {

OrderedJson text_part(const std::string& text) {
  return {{"type", "output_text"}, {"text", text}, {"annotations", OrderedJson::array()}};
}

OrderedJson usage_object(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", {{"reasoning_tokens", 0}}},
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
  OrderedJson out = {
      {"id", item.id}, {"type", item.call ? "function_call" : "message"}, {"status", item.status}};
  if (item.call) {
    out["call_id"] = item.call_id;
    out["name"] = item.name;
    out["arguments"] = item.text;
    return out;
  }
  out["role"] = "assistant";
  out["content"] = OrderedJson::array();
  if (item.status != "in_progress" || !item.text.empty())
    out["content"].push_back(text_part(item.text));
  return out;
}

ResponseWriter::Item& ResponseWriter::message() {
  if (!items_.empty() && !items_.back().call) return items_.back();
  close_last();
  items_.push_back({.id = fmt::format("msg_{}_{}", head_.id, items_.size())});
  Item& item = items_.back();
  event("response.output_item.added",
        {{"output_index", items_.size() - 1}, {"item", json_of(item)}});
  OrderedJson part = place(item, true);
  part["part"] = text_part("");
  event("response.content_part.added", part);
  return item;
}

void ResponseWriter::open_call(const AnswerCallDelta& call) {
  close_last();
  items_.push_back({.id = fmt::format("fc_{}_{}", head_.id, items_.size()),
                    .call = true,
                    .text = {},
                    .call_id = call.id,
                    .name = *call.name});
  event("response.output_item.added",
        {{"output_index", items_.size() - 1}, {"item", json_of(items_.back())}});
}

void ResponseWriter::add(const std::string& text, const std::vector<AnswerCallDelta>& calls) {
  if (!text.empty()) {
    Item& item = message();
    item.text += text;
    OrderedJson delta = place(item, true);
    delta["delta"] = text;
    delta["logprobs"] = OrderedJson::array();
    event("response.output_text.delta", delta);
  }
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
  OrderedJson done = place(item, !item.call);
  if (item.call) {
    done["name"] = item.name;
    done["arguments"] = item.text;
    event("response.function_call_arguments.done", done);
  } else {
    OrderedJson part = done;
    done["text"] = item.text;
    done["logprobs"] = OrderedJson::array();
    event("response.output_text.done", done);
    part["part"] = text_part(item.text);
    event("response.content_part.done", part);
  }
  event("response.output_item.done", {{"output_index", index}, {"item", json_of(item)}});
}

void ResponseWriter::finish(const Finish& finish, const Usage& usage) {
  if (items_.empty()) message();
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
