#include "generator/train/adapter_shape.h"

namespace valora::generator {
namespace {

bool is_projector(const adapters::Module& module) {
  return module.visual && (module.name.find("multi_modal_projector.") != std::string::npos ||
                           module.name.starts_with("mlp1.") ||
                           module.name.find(".attn_pool.") != std::string::npos ||
                           module.name.find(".connector.") != std::string::npos ||
                           module.name.find(".merger.") != std::string::npos ||
                           module.name.find(".deepstack_merger_list.") != std::string::npos);
}

TargetPart part_of(const adapters::Module& module) {
  if (!module.visual) return TargetPart::kDecoder;
  return is_projector(module) ? TargetPart::kProjector : TargetPart::kTower;
}

}  // namespace

const char* target_part_name(TargetPart part) {
  switch (part) {
    case TargetPart::kDecoder: return "decoder";
    case TargetPart::kProjector: return "projector";
    case TargetPart::kTower: return "vision";
  }
  return "";
}

Result<std::vector<int>> target_modules(const adapters::ModuleTable& modules,
                                        const std::vector<TargetPart>& parts) {
  std::vector<bool> wanted(modules.modules().size());
  for (const TargetPart part : parts) {
    bool any = false;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const adapters::Module& module = modules.modules()[i];
      if (module.kind == adapters::ModuleKind::kLinear &&
          module.mixture == adapters::Module::Mixture::kNone && part_of(module) == part)
        wanted[i] = any = true;
    }
    if (!any)
      return invalid(std::string("this model has no linears in its ") + target_part_name(part),
                     "targets");
  }
  std::vector<int> found;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) found.push_back(static_cast<int>(i));
  return found;
}

Result<TargetPart> parse_target_part(const std::string& name) {
  for (const TargetPart part : {TargetPart::kDecoder, TargetPart::kProjector, TargetPart::kTower})
    if (name == target_part_name(part)) return part;
  return invalid(
      "\"" + name + "\" is not a part that adapters train on; use decoder, projector or vision",
      "targets");
}

Json to_json(const AdapterShape& shape) {
  Json heads = Json::array();
  for (const HeadShape& head : shape.heads)
    heads.push_back(
        {{"name", head.name}, {"labels", head.labels}, {"multi_label", head.multi_label}});
  Json out{
      {"rank", shape.rank}, {"alpha", shape.alpha}, {"modules", shape.modules}, {"heads", heads}};
  if (!shape.invocation.empty()) out["invocation"] = shape.invocation;
  return out;
}

Result<AdapterShape> shape_from_json(const Json& json, const std::string& what) {
  try {
    AdapterShape shape{json.at("rank"), json.at("alpha"), json.at("modules"), {}};
    for (const Json& head : json.at("heads"))
      shape.heads.push_back({head.at("name"), head.at("labels"), head.at("multi_label")});
    shape.invocation = json.value("invocation", std::vector<int32_t>());
    return shape;
  } catch (const Json::exception& e) {
    return unprocessable(what + " holds no adapter's shape: " + e.what(), what);
  }
}

}  // namespace valora::generator
