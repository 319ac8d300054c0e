#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/files/write_file.h"
#include "base/tensors/gguf.h"
#include "base/tensors/gguf_files.h"
#include "generator/quantise/input_moments.h"
#include "generator/quantise/packed_linear.h"
#include "generator/quantise/plan.h"
#include "generator/quantise/rounding.h"
#include "generator/stopped.h"
#include "models/registry.h"
#include "ops/device/compute_threads.h"

namespace valora::generator {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostConfigBytes = size_t{16} << 20;
// Weight files of any kind, which are not copied to the new folder.
constexpr std::array kWeightEndings = {".safetensors", ".bin", ".pt",   ".pth",     ".gguf",
                                       ".onnx",        ".h5",  ".ckpt", ".msgpack", ".index.json"};

class FolderQuantiser {
 public:
  FolderQuantiser(const QuantiseOptions& options, const QuantiseEvents& events)
      : options_(options), events_(events) {}

  Result<QuantiseReport> run();

 private:
  Status check() const;
  Status read_model();
  Status round_all();
  Status round_together(std::span<const PlannedLinear> linears);
  Status round(const PlannedLinear& linear, const at::Tensor* moments);
  Status write(const std::string& folder);
  Status write_weights(const std::string& folder, size_t file);
  Status write_index(const std::string& folder) const;
  Status write_config(const std::string& folder) const;
  Status copy_others(const std::string& folder) const;
  std::string name_of_file(size_t file) const {
    return fs::path(plan_.files[file]->path()).filename();
  }

  const QuantiseOptions& options_;
  const QuantiseEvents& events_;
  std::unique_ptr<InputMoments> moments_;  // null: no samples
  models::ModelSpec spec_;
  QuantisePlan plan_;
  std::map<std::string, std::vector<OwnedTensor>> packed_;  // by the tensor they replace
  std::map<std::string, std::string> weight_map_;           // written tensor -> its file
  uint64_t written_ = 0;
  double squared_error_ = 0, squares_ = 0;
  QuantiseReport report_;
};

Status FolderQuantiser::check() const {
  const int64_t group = options_.group;
  if (group < 0 || (group > 0 && group % 16 != 0))
    return invalid("--group-size must be a multiple of 16", "group-size");
  if (group > 0 && options_.scheme == QuantiseScheme::kW8A8)
    return invalid("--group-size needs W4A16 or W8A16: W8A8 has one scale per output",
                   "group-size");
  if (options_.samples < 1) return invalid("--samples must be 1 or more", "samples");
  std::error_code error;
  if (fs::exists(options_.output, error) && !fs::is_empty(options_.output, error))
    return invalid("--output " + options_.output + " already exists and is not empty", "output");
  return {};
}

Status FolderQuantiser::read_model() {
  if (const auto gguf = find_gguf(options_.engine.model_path))
    return unprocessable(
        *gguf + " is a GGUF file: give the Hugging Face folder that it was made from", *gguf);
  VALORA_TRY(config, models::read_model_config(options_.engine.model_path));
  for (const char* key : {"quantization_config", "compression_config"})
    if (config.has(key))
      return unprocessable(config.file() + ": the model is quantised already (" + key + ")",
                           config.file());
  VALORA_TRY(family, models::find_family(config));
  VALORA_TRY(spec, models::read_model_spec(*family, config));
  spec_ = std::move(spec);
  VALORA_TRY(plan, plan_quantisation(options_, spec_));
  plan_ = std::move(plan);
  return {};
}

Status FolderQuantiser::round(const PlannedLinear& linear, const at::Tensor* moments) {
  if (events_.stop.stop_requested()) return stopped();
  const at::Tensor stored = models::tensor_of(linear.weight);
  const at::Tensor w =
      (linear.transposed ? stored.slice(1, linear.first, linear.first + linear.out).t() : stored)
          .to(at::kFloat)
          .contiguous();
  const Grid grid{bits_of(options_.scheme), linear.group, models::stored_type(linear.weight.dtype)};
  try {
    const ops::QuantisedTensor rounded =
        moments ? round_by_moments(w, *moments, grid) : round_to_nearest(w, grid);
    squared_error_ += (rounded.decoded() - w).square().sum().item<double>();
    squares_ += w.square().sum().item<double>();
    std::vector<OwnedTensor>& packed = packed_[linear.tensor];
    for (OwnedTensor& part :
         packed_linear(linear.name, rounded, options_.scheme, linear.weight.dtype))
      packed.push_back(std::move(part));
  } catch (const c10::Error& e) {
    const std::string& path = plan_.files[linear.file]->path();
    return unprocessable(fmt::format("{}: tensor {} {}", path, linear.tensor, e.msg()), path);
  }
  ++report_.linears;
  events_.progress("rounding", report_.linears, static_cast<int64_t>(plan_.linears.size()));
  return {};
}

// Rounds linears whose moments are gathered in one pass over the samples.
Status FolderQuantiser::round_together(std::span<const PlannedLinear> linears) {
  std::set<int> modules;
  for (const PlannedLinear& linear : linears) modules.insert(linear.module);
  VALORA_TRY(moments, moments_->gather(
                          modules,
                          [&](int64_t done) {
                            events_.progress(fmt::format("reading samples for {} of {} linears",
                                                         linears.size(), plan_.linears.size()),
                                             done, moments_->samples());
                          },
                          events_.stop));
  for (const PlannedLinear& linear : linears) {
    const auto found = moments.find(linear.module);
    VALORA_CHECK(round(linear, found == moments.end() ? nullptr : &found->second));
  }
  return {};
}

Status FolderQuantiser::round_all() {
  if (!moments_) {
    for (const PlannedLinear& linear : plan_.linears) VALORA_CHECK(round(linear, nullptr));
    return {};
  }
  const std::span<const PlannedLinear> all(plan_.linears);
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin, bytes = 0;
    for (; end < all.size(); ++end) {
      const auto in = static_cast<size_t>(all[end].in);
      bytes += in * in * sizeof(float);
      if (end > begin && bytes > options_.moment_bytes) break;
    }
    VALORA_CHECK(round_together(all.subspan(begin, end - begin)));
    begin = end;
  }
  return {};
}

Status FolderQuantiser::write_weights(const std::string& folder, size_t file) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, view] : plan_.files[file]->tensors()) {
    const auto packed = packed_.find(name);
    if (packed == packed_.end()) {
      tensors.push_back({name, view.dtype, view.shape, view.bytes});
    } else {
      for (const OwnedTensor& part : packed->second) tensors.push_back(part.view());
    }
  }
  for (const NamedTensor& tensor : tensors) {
    weight_map_[tensor.name] = name_of_file(file);
    written_ += tensor.bytes.size();
  }
  return write_safetensors(folder + "/" + name_of_file(file), std::move(tensors),
                           {{"format", "pt"}});
}

Status FolderQuantiser::write_index(const std::string& folder) const {
  if (plan_.files.size() == 1 && name_of_file(0) == "model.safetensors") return {};
  const OrderedJson index{{"metadata", {{"total_size", written_}}}, {"weight_map", weight_map_}};
  return write_file(folder + "/model.safetensors.index.json", index.dump(2) + "\n");
}

Status FolderQuantiser::write_config(const std::string& folder) const {
  const std::string path = options_.engine.model_path + "/config.json";
  VALORA_TRY(text, read_file(path, kMostConfigBytes));
  VALORA_CHECK(parse_json(text, path));  // with limits of depth and size
  OrderedJson config = OrderedJson::parse(text);
  config["quantization_config"] = quantization_config(options_, plan_, spec_);
  return write_file(folder + "/config.json", config.dump(2) + "\n");
}

Status FolderQuantiser::copy_others(const std::string& folder) const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(options_.engine.model_path, error)) {
    const std::string name = entry.path().filename();
    const auto ends = [&](const char* ending) { return name.ends_with(ending); };
    if (!entry.is_regular_file(error) || name == "config.json" ||
        std::ranges::any_of(kWeightEndings, ends))
      continue;
    fs::copy_file(entry.path(), folder + "/" + name, error);
    if (error)
      return unprocessable(folder + "/" + name + " cannot be written: " + error.message(), name);
  }
  return {};
}

Status FolderQuantiser::write(const std::string& folder) {
  for (size_t file = 0; file < plan_.files.size(); ++file) {
    if (events_.stop.stop_requested()) return stopped();
    events_.progress("writing", static_cast<int64_t>(file),
                     static_cast<int64_t>(plan_.files.size()));
    VALORA_CHECK(write_weights(folder, file));
  }
  VALORA_CHECK(write_index(folder));
  VALORA_CHECK(copy_others(folder));
  return write_config(folder);
}

Result<QuantiseReport> FolderQuantiser::run() {
  VALORA_CHECK(check());
  VALORA_CHECK(read_model());
  ops::set_compute_threads(options_.engine.threads);
  if (!options_.tasks.empty() || !options_.text.empty()) {
    VALORA_TRY(moments, InputMoments::open(options_, events_));
    moments_ = std::move(moments);
    report_.samples = moments_->samples();
    report_.tokens = moments_->tokens();
  }
  VALORA_CHECK(round_all());
  moments_.reset();
  for (const auto& file : plan_.files)
    for (const auto& [name, view] : file->tensors()) report_.bytes_before += byte_size(view);
  VALORA_CHECK(
      write_folder(options_.output, [&](const std::string& staged) { return write(staged); }));
  report_.bytes_after = written_;
  report_.weight_error = squares_ > 0 ? std::sqrt(squared_error_ / squares_) : 0;
  return report_;
}

}  // namespace

Result<QuantiseReport> quantise_folder(const QuantiseOptions& options,
                                       const QuantiseEvents& events) {
  QuantiseOptions own = options;
  while (own.output.size() > 1 && own.output.ends_with('/')) own.output.pop_back();
  try {
    return FolderQuantiser(own, events).run();
  } catch (const std::exception& e) {  // most likely a failed allocation
    return unprocessable(options.engine.model_path + " could not be quantised: " + e.what(),
                         options.engine.model_path);
  }
}

}  // namespace valora::generator
