#include "server/handlers/handlers.h"

#include "api/changed_parts_json.h"
#include "server/handlers/viewer.h"
#include "server/openai/errors.h"
#include "server/openai/json_text.h"

namespace valora::server {
namespace {

OrderedJson permission(const std::string& model, int64_t created) {
  OrderedJson out = OrderedJson::object();
  out["id"] = "modelperm-" + model;
  out["object"] = "model_permission";
  out["created"] = created;
  out["allow_create_engine"] = false;
  out["allow_sampling"] = true;
  out["allow_logprobs"] = true;
  out["allow_search_indices"] = false;
  out["allow_view"] = true;
  out["allow_fine_tuning"] = false;
  out["organization"] = "*";
  out["group"] = nullptr;
  out["is_blocking"] = false;
  return out;
}

OrderedJson card(const std::string& id, int64_t created, const std::string& root,
                 const OrderedJson& parent, const ModelCard& model) {
  OrderedJson out = OrderedJson::object();
  out["id"] = id;
  out["object"] = "model";
  out["created"] = created;
  out["owned_by"] = "valora";
  out["root"] = root;
  out["parent"] = parent;
  out["max_model_len"] = model.max_model_len;
  OrderedJson& modalities = out["input_modalities"] = OrderedJson::array({"text"});
  if (model.images) modalities.push_back("image");
  if (model.videos) modalities.push_back("video");
  out["architecture"] = {{"input_modalities", modalities}};  // as llama.cpp's server has them
  out["permission"] = OrderedJson::array({permission(id, created)});
  return out;
}

OrderedJson base_card(const Service& service, const Viewer& viewer, const std::string& name) {
  const ModelCard& model = service.engine.model();
  return card(name, model.created, viewer.sees_model_folder() ? model.path : name, nullptr, model);
}

// A head may have half a million labels, so lists of adapters only say how many there are.
enum class LabelsAs { kCount, kList };

void add_labels(OrderedJson& out, const Labels& labels, LabelsAs as) {
  out["num_labels"] = labels.size();
  if (as == LabelsAs::kList) out["labels"] = labels.list();
}

// Lists which request fields each head answers, and which head answers by default.
void add_heads(OrderedJson& out, const AdapterCard& adapter, LabelsAs as) {
  if (adapter.heads.empty()) return;
  OrderedJson& heads = out["heads"] = OrderedJson::array();
  for (const auto& [name, labels] : adapter.heads) {
    OrderedJson head = {{"name", name}};
    add_labels(head, labels, as);
    head["request"] = {{"model", adapter.name}, {"head", name}};
    heads.push_back(std::move(head));
  }
  const std::string only = adapter.heads.size() == 1 ? adapter.heads.front().first : "";
  const std::string answers = adapter.head.value_or(only);
  out["default_head"] = answers.empty() ? "lm" : answers;
}

OrderedJson adapter_card(const Service& service, const Viewer& viewer, const AdapterCard& adapter,
                         LabelsAs as) {
  const std::string folder = viewer.folder_of(adapter);
  OrderedJson out = card(adapter.name, adapter.created, folder.empty() ? adapter.name : folder,
                         service.base_name(), service.engine.model());
  add_heads(out, adapter, as);
  if (as == LabelsAs::kList && !adapter.form.labels.empty())
    add_labels(out, adapter.form.labels, as);
  return out;
}

OrderedJson adapter_details(const Viewer& viewer, const AdapterCard& adapter) {
  const std::string folder = viewer.folder_of(adapter);
  OrderedJson heads = OrderedJson::array();
  for (const auto& [name, labels] : adapter.heads)
    heads.push_back({{"name", name}, {"num_labels", labels.size()}});
  OrderedJson out = OrderedJson::object();
  out["name"] = adapter.name;
  out["path"] = folder.empty() ? OrderedJson() : OrderedJson(folder);
  out["generation"] = adapter.generation;
  out["rank"] = adapter.rank;
  out["bytes"] = adapter.bytes;
  out["pinned"] = adapter.pinned;
  out["resident"] = adapter.place == WeightsPlace::kPool;
  out["task"] = adapter.task;
  out["description"] = adapter.description;
  out["question"] = adapter.question;
  out["heads"] = std::move(heads);
  out["head"] = adapter.head ? OrderedJson(*adapter.head) : OrderedJson();
  out["num_labels"] = adapter.form.labels.size();
  out["boxes"] = adapter.form.boxes.has_value();
  out["created"] = adapter.created;
  out["activated"] = adapter.activated;
  out["changes"] = changed_parts_json<OrderedJson>(adapter.changes);
  out["warnings"] = adapter.warnings;
  return out;
}

void respond_list(Exchange& exchange, OrderedJson data) {
  OrderedJson out = OrderedJson::object();
  out["object"] = "list";
  out["data"] = std::move(data);
  exchange.respond({.body = to_text(out)});
}

}  // namespace

void handle_models(const std::shared_ptr<Service>& service, HttpRequest request,
                   std::shared_ptr<Exchange> exchange) {
  const Viewer viewer(*service, request);
  OrderedJson data = OrderedJson::array();
  if (viewer.may_ask(service->base_name()))
    for (const std::string& name : service->base_names)
      data.push_back(base_card(*service, viewer, name));
  for (const AdapterCard& adapter : service->engine.adapters())
    if (viewer.may_ask(adapter.name))
      data.push_back(adapter_card(*service, viewer, adapter, LabelsAs::kCount));
  respond_list(*exchange, std::move(data));
}

void handle_model(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange) {
  const std::string id = request.path.substr(kModelPrefix.size());
  const Viewer viewer(*service, request);
  if (!id.empty() && service->is_base(id) && viewer.may_ask(service->base_name()))
    return exchange->respond({.body = to_text(base_card(*service, viewer, id))});
  const auto adapter = service->engine.adapter(std::string(service->adapter_of(id)));
  if (id.empty() || !adapter || !viewer.may_ask(adapter->name))
    return exchange->respond(error_response(model_not_found(id)));
  exchange->respond({.body = to_text(adapter_card(*service, viewer, *adapter, LabelsAs::kList))});
}

void handle_lora_adapters(const std::shared_ptr<Service>& service, HttpRequest request,
                          std::shared_ptr<Exchange> exchange) {
  const Viewer viewer(*service, request);
  OrderedJson data = OrderedJson::array();
  for (const AdapterCard& adapter : service->engine.adapters())
    if (viewer.sees_adapter(adapter.name)) data.push_back(adapter_details(viewer, adapter));
  respond_list(*exchange, std::move(data));
}

}  // namespace valora::server
