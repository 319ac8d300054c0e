#include "kernels/tiles/tile_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file.h"
#include "base/files/write_file.h"
#include "base/json/json.h"
#include "base/text/strings.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/tiles/tile.h"

namespace valora::kernels {
namespace {

// Converts between a tile and its numbers in a tile file.
constexpr size_t kCpuNumbers = 3, kCudaNumbers = 4, kCudaWords = 1;

// How many numbers a tile has, and their names: "rows, panels, chains".
size_t tile_number_count(Device device) {
  return device == Device::kCpu ? kCpuNumbers : kCudaNumbers;
}

const char* tile_number_names(Device device) {
  return device == Device::kCpu ? "rows, panels, chains" : "width, warps, stages, splits";
}

std::vector<int64_t> tile_numbers(const Tile& tile) {
  if (const CpuTile* t = std::get_if<CpuTile>(&tile)) return {t->rows, t->panels, t->chains};
  const CudaTile& t = std::get<CudaTile>(tile);
  return {t.width, t.warps, t.stages, t.splits};
}

// numbers: tile_number_count(device) values >= 1. nullopt if a value overflows its field.
std::optional<Tile> tile_of_numbers(Device device, std::span<const int64_t> n) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(n[i]); };
  const size_t words = device == Device::kCpu ? 0 : kCudaWords;
  for (size_t i = 0; i < n.size(); ++i)
    if (n[i] > (i < words ? UINT16_MAX : UINT8_MAX)) return std::nullopt;
  if (device == Device::kCpu) return CpuTile{byte(0), byte(1), byte(2)};
  return CudaTile{static_cast<uint16_t>(n[0]), byte(1), byte(2), byte(3)};
}

// "3 rows, 2 panels and 1 chains"
std::string tile_text(Device device, std::span<const int64_t> n) {
  if (device == Device::kCpu)
    return fmt::format("{} rows, {} panels and {} chains", n[0], n[1], n[2]);
  return fmt::format("width {}, {} warps, {} stages and {} splits", n[0], n[1], n[2], n[3]);
}

constexpr int64_t kVersion = 1;
constexpr JsonLimits kLimits{
    .max_bytes = size_t{4} << 20, .max_depth = 6, .max_values = 400000, .unique_keys = true};

template <typename T>
struct Name {
  std::string_view name;
  T value;
};
constexpr auto kKinds = std::to_array<Name<ProductKind>>({{"dense", ProductKind::kDense},
                                                          {"shrink", ProductKind::kShrink},
                                                          {"expand", ProductKind::kExpand},
                                                          {"long_shrink", ProductKind::kLongShrink},
                                                          {"long_expand", ProductKind::kLongExpand},
                                                          {"merge", ProductKind::kMerge}});
constexpr auto kDevices =
    std::to_array<Name<Device>>({{"cpu", Device::kCpu}, {"cuda", Device::kCuda}});
constexpr auto kDtypes = std::to_array<Name<bool>>({{"bfloat16", false}, {"float32", true}});
const auto kArchs =
    std::to_array<Name<CudaArch>>({{arch_name(CudaArch::kSm80), CudaArch::kSm80},
                                   {arch_name(CudaArch::kSm86), CudaArch::kSm86},
                                   {arch_name(CudaArch::kSm89), CudaArch::kSm89},
                                   {arch_name(CudaArch::kSm90), CudaArch::kSm90},
                                   {arch_name(CudaArch::kSm120), CudaArch::kSm120}});

// Reads the fields of one object. Remembers the first error, with its location in the file.
class Fields {
 public:
  Fields(const Json& object, std::string where, std::span<const char* const> known)
      : object_(object), where_(std::move(where)) {
    if (!object.is_object())
      fault("must be an object");
    else
      for (const auto& [key, value] : object.items())
        if (std::ranges::none_of(known, [&](const char* name) { return key == name; }))
          fault("has the unknown field \"" + shortened(key) + "\"");
  }

  template <typename T>
  T read(const char* key) {
    auto value = required_field<T>(object_, key);
    if (value.ok()) return *value;
    fault(": " + value.error().message);
    return {};
  }
  int64_t number(const char* key, int64_t least, int64_t most) {
    const int64_t value = read<int64_t>(key);
    if (value >= least && value <= most) return value;
    fault(std::string(": \"") + key + "\" must be " + std::to_string(least) + " to " +
          std::to_string(most));
    return least;
  }
  template <typename Names>
  auto named(const char* key, const Names& names) {
    const auto name = read<std::string>(key);
    std::string all;
    for (const auto& known : names) {
      if (name == known.name) return known.value;
      all += std::string(all.empty() ? "" : ", ") + std::string(known.name);
    }
    fault(std::string(": \"") + key + "\" must be one of " + all);
    return names.begin()->value;
  }
  void fault(const std::string& what) {
    if (fault_.empty()) fault_ = where_ + (what.starts_with(':') ? "" : " ") + what;
  }
  Status status() const { return fault_.empty() ? Status() : Status(invalid(fault_, where_)); }

 private:
  const Json& object_;
  std::string where_, fault_;
};

Result<Hardware> parse_hardware_field(const Json& json, const std::string& where) {
  static constexpr const char* kCpu[] = {"cpu", "vendor", "family", "model", "isa", "l1", "l2"};
  static constexpr const char* kGpu[] = {"gpu", "vendor", "family", "model", "isa", "l1", "l2"};
  const bool gpu = json.is_object() && json.contains("gpu");
  Fields fields(json, where, gpu ? kGpu : kCpu);
  Hardware h;
  h.device = gpu ? Device::kCuda : Device::kCpu;
  h.name = fields.read<std::string>(gpu ? "gpu" : "cpu");
  h.vendor = fields.read<std::string>("vendor");
  h.family = fields.number("family", 0, 1 << 20);
  h.model = fields.number("model", 0, 1 << 20);
  h.isa = fields.read<std::string>("isa");
  h.l1 = fields.number("l1", 0, int64_t{1} << 40);
  h.l2 = fields.number("l2", 0, int64_t{1} << 40);
  VALORA_CHECK(fields.status());
  return h;
}

template <typename T, size_t N>
std::string_view name_of(T value, const std::array<Name<T>, N>& names) {
  for (const auto& known : names)
    if (known.value == value) return known.name;
  return names[0].name;
}

std::string processor_name(Processor processor) {
  return processor.device() == Device::kCpu ? std::string(isa_name(processor.isa()))
                                            : arch_name(processor.arch());
}

std::vector<Name<Isa>> isa_names() {
  std::vector<Name<Isa>> names;
  for (const Isa isa : all_isas()) names.push_back({isa_name(isa), isa});
  return names;
}

// json: [tokens, the tile's numbers…]
Result<TileEntry> parse_entry(const Json& json, ProductShape shape, const std::string& where) {
  const Device device = shape.processor.device();
  std::vector<int64_t> values(1 + tile_number_count(device));
  if (!json.is_array() || json.size() != values.size())
    return invalid(where + " must be [tokens, " + tile_number_names(device) + "]", where);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!json[i].is_number_integer() || (values[i] = json[i].get<int64_t>()) < 1 ||
        values[i] > kMostTokens)
      return invalid(where + "[" + std::to_string(i) + "] must be an integer from 1 to " +
                         std::to_string(kMostTokens),
                     where);
  }
  shape.m = values[0];
  if (token_bucket(shape.m) != shape.m)
    return invalid(where + ": " + std::to_string(shape.m) + " tokens are in the bucket of " +
                       std::to_string(token_bucket(shape.m)),
                   where);
  const auto numbers = std::span(values).subspan(1);
  const std::optional<Tile> tile = tile_of_numbers(device, numbers);
  if (!tile || !is_tile_of(shape, *tile))
    return invalid(where + ": " + processor_name(shape.processor) + " has no tile of " +
                       tile_text(device, numbers),
                   where);
  return TileEntry{TileKey::of(shape), *tile};
}

// measured: the device of the file.
Status parse_group(const Json& json, const std::string& where, Device measured,
                   std::vector<TileEntry>& entries) {
  static constexpr const char* kKnown[] = {"kind", "device", "dtype", "isa", "n", "k", "tokens"};
  Fields fields(json, where, kKnown);
  VALORA_CHECK(fields.status());
  ProductShape shape;
  shape.kind = fields.named("kind", kKinds);
  const Device device = fields.named("device", kDevices);
  shape.float32 = fields.named("dtype", kDtypes);
  if (device == Device::kCpu)
    shape.processor = fields.named("isa", isa_names());
  else
    shape.processor = fields.named("isa", kArchs);
  shape.n = fields.number("n", 1, kMostSize);
  shape.k = fields.number("k", 1, kMostSize);
  if (!json.contains("tokens") || !json["tokens"].is_array())
    fields.fault(": \"tokens\" must be an array");
  if (device != measured) fields.fault(": \"device\" is not that of the hardware");
  VALORA_CHECK(fields.status());
  const Json& tokens = json["tokens"];
  for (size_t i = 0; i < tokens.size(); ++i) {
    VALORA_TRY(entry, parse_entry(tokens[i], shape, where + ".tokens[" + std::to_string(i) + "]"));
    entries.push_back(entry);
  }
  return {};
}

Json entry_json(int64_t tokens, const Tile& tile) {
  Json json = tile_numbers(tile);
  json.insert(json.begin(), tokens);
  return json;
}

struct Group {
  Json shape, tokens;
};

Json group_json(const TileKey& key) {
  const ProductShape s = key.shape();
  return {{"kind", name_of(s.kind, kKinds)},
          {"device", name_of(s.processor.device(), kDevices)},
          {"dtype", name_of(s.float32, kDtypes)},
          {"isa", processor_name(s.processor)},
          {"n", s.n},
          {"k", s.k}};
}

}  // namespace

Result<TileFile> parse_tile_file(std::string_view text, const std::string& what) {
  VALORA_TRY(json, parse_json(text, what, kLimits));
  static constexpr const char* kKnown[] = {"version", "hardware", "tiles"};
  Fields fields(json, what, kKnown);
  VALORA_CHECK(fields.status());
  if (fields.read<int64_t>("version") != kVersion)
    fields.fault(": \"version\" must be " + std::to_string(kVersion));
  if (!json.contains("hardware")) fields.fault(": \"hardware\" is missing");
  if (!json.contains("tiles") || !json["tiles"].is_array())
    fields.fault(": \"tiles\" must be an array");
  VALORA_CHECK(fields.status());
  VALORA_TRY(hardware, parse_hardware_field(json["hardware"], what + ": hardware"));
  std::vector<TileEntry> entries;
  for (size_t i = 0; i < json["tiles"].size(); ++i)
    VALORA_CHECK(parse_group(json["tiles"][i], what + ": tiles[" + std::to_string(i) + "]",
                             hardware.device, entries));
  const size_t count = entries.size();
  TileFile file{std::move(hardware), TileTable(std::move(entries))};
  if (file.table.size() != count) return invalid(what + ": a shape occurs twice", what);
  return file;
}

Result<TileFile> read_tile_file(const std::string& path) {
  VALORA_TRY(text, read_file(path, kLimits.max_bytes));
  return parse_tile_file(text, path);
}

std::string tile_file_text(const TileFile& file) {
  const Hardware& h = file.hardware;
  const char* name = h.device == Device::kCuda ? "gpu" : "cpu";
  const Json hardware = {{name, h.name},     {"vendor", h.vendor}, {"family", h.family},
                         {"model", h.model}, {"isa", h.isa},       {"l1", h.l1},
                         {"l2", h.l2}};
  std::vector<Group> groups;
  std::map<std::pair<uint64_t, std::pair<int64_t, int64_t>>, size_t>
      places;  // entries of one group need not be adjacent
  for (const TileEntry& entry : file.table.entries()) {
    const ProductShape s = entry.key.shape();
    const auto [place, added] = places.try_emplace({entry.key.family(), {s.n, s.k}}, groups.size());
    if (added) groups.push_back({group_json(entry.key), Json::array()});
    groups[place->second].tokens.push_back(entry_json(s.m, entry.tile));
  }
  std::string text = "{\"version\": " + std::to_string(kVersion) + ",\n \"hardware\": " +
                     hardware.dump(-1, ' ', false, Json::error_handler_t::replace) +
                     ",\n \"tiles\": [";
  for (size_t i = 0; i < groups.size(); ++i) {
    std::string line = groups[i].shape.dump();
    line.pop_back();
    text += (i ? ",\n  " : "\n  ") + line + ",\"tokens\":" + groups[i].tokens.dump() + "}";
  }
  return text + "]}\n";
}

Status write_tile_file(const std::string& path, const TileFile& file) {
  return write_file_and_folder(path, tile_file_text(file));
}

}  // namespace valora::kernels
