#include "cli/rows/run_output.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace valora::cli {
namespace {

// Corners have tenths; their differences shall have no more digits.
double tenths(double value) { return std::round(value * 10) / 10; }

const std::string& label_of(const OrderedJson& box, const CocoNames& names) {
  const auto label = box.find("label");
  return label != box.end() && label->is_string() ? label->get_ref<const std::string&>()
                                                  : names.unnamed;
}

// The ids of the labels: those of the task first, then others by their names.
std::map<std::string, int> category_ids(const std::vector<OrderedJson>& rows,
                                        const CocoNames& names, OrderedJson& categories) {
  std::vector<std::string> labels = names.labels;
  std::set<std::string> others;
  for (const OrderedJson& row : rows)
    if (const auto boxes = row.find("boxes"); boxes != row.end())
      for (const OrderedJson& box : *boxes) others.insert(label_of(box, names));
  for (const std::string& label : others)
    if (std::ranges::find(labels, label) == labels.end()) labels.push_back(label);
  std::map<std::string, int> ids;
  for (const std::string& label : labels) {
    const int id = static_cast<int>(ids.size()) + 1;
    ids.emplace(label, id);
    categories.push_back({{"id", id}, {"name", label}});
  }
  return ids;
}

OrderedJson annotation(const OrderedJson& box, int id, int image, int category) {
  const OrderedJson& corners = box.at("box");
  const double x0 = corners.at(0), y0 = corners.at(1), x1 = corners.at(2), y1 = corners.at(3);
  const double width = tenths(x1 - x0), height = tenths(y1 - y0);
  return {{"id", id},
          {"image_id", image},
          {"category_id", category},
          {"bbox", OrderedJson::array({x0, y0, width, height})},
          {"area", std::round(width * height * 100) / 100},
          {"iscrowd", 0}};
}

}  // namespace

Result<OrderedJson> coco_of(std::vector<OrderedJson> rows, const CocoNames& names) {
  std::ranges::sort(rows, {},
                    [](const OrderedJson& row) { return row.at("name").get<std::string>(); });
  OrderedJson images = OrderedJson::array(), annotations = OrderedJson::array(),
              categories = OrderedJson::array(), errors = OrderedJson::array();
  const std::map<std::string, int> ids = category_ids(rows, names, categories);
  for (const OrderedJson& row : rows) {
    const OrderedJson& name = row.at("name");
    if (row.contains("error")) {
      errors.push_back({{"file_name", name}, {"message", row["error"].at("message")}});
      continue;
    }
    const int image = static_cast<int>(images.size()) + 1;
    images.push_back({{"id", image},
                      {"file_name", name},
                      {"width", row.at("size").at(0)},
                      {"height", row.at("size").at(1)}});
    for (const OrderedJson& box : row.at("boxes"))
      annotations.push_back(annotation(box, static_cast<int>(annotations.size()) + 1, image,
                                       ids.at(label_of(box, names))));
  }
  OrderedJson out = {{"images", std::move(images)},
                     {"annotations", std::move(annotations)},
                     {"categories", std::move(categories)}};
  if (!errors.empty()) out["errors"] = std::move(errors);
  return out;
}

}  // namespace valora::cli
