// What a model's configuration says of its quantised linears: "quantization_config", or
// "compression_config", of config.json.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/quantised/name_rules.h"
#include "models/quantised/scheme.h"
#include "models/spec/config_reader.h"

namespace valora::models {

class QuantisedConfig {
 public:
  struct Rule {
    NameSet linears;
    std::optional<QuantisedScheme> scheme;  // absent: they are stored as they are
    std::string key;                        // of the configuration, for errors
  };

  // format: the method and format as their writers name them. text: the configuration itself.
  QuantisedConfig(std::string format, std::string text, std::string file)
      : format_(std::move(format)), text_(std::move(text)), file_(std::move(file)) {}

  void add(Rule rule) { rules_.push_back(std::move(rule)); }
  // The order of such rules in the file decides which of them counts for a linear, but objects are
  // read without their order: two of them that disagree on a linear are an error.
  void add_unordered(Rule rule) { unordered_.push_back(std::move(rule)); }

  // The rule for the linear with these names: of the unordered ones the one that has it, else the
  // first of the others. Null: none has it. Throws LoadError.
  const Rule* rule_of(std::span<const std::string> names) const;

  const std::string& format() const { return format_; }
  const std::string& text() const { return text_; }
  const std::string& file() const { return file_; }
  // "4 bits in groups of 128", of all schemes.
  std::string describe() const;

 private:
  std::string format_, text_, file_;
  std::vector<Rule> rules_, unordered_;
  mutable adapters::RegexBudget budget_;
};

// Absent if the configuration has none. Throws LoadError, which names the key, for a method, a
// format or an option that is not served.
std::optional<QuantisedConfig> read_quantised_config(const ConfigReader& config);

// The parts of it, by method. `config` is the section.
QuantisedConfig read_compressed_tensors_config(const ConfigReader& config);
QuantisedConfig read_gptq_config(const ConfigReader& config);
QuantisedConfig read_awq_config(const ConfigReader& config);
QuantisedConfig read_fp8_config(const ConfigReader& config);
QuantisedConfig read_bitsandbytes_config(const ConfigReader& config);

// Throws LoadError for the first key that is set (not null, false or empty). Each changes the
// answer in a way that is not served.
void refuse_set(const ConfigReader& config, std::initializer_list<const char*> keys);

}  // namespace valora::models
