// The settings of quantised linears in config.json: "quantization_config" or "compression_config".
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
    std::optional<QuantisedScheme> scheme;  // absent: stored in floats
    std::string key;                        // the configuration key, for error messages
  };

  // format: the method and format as their authors name them. text: the configuration itself.
  QuantisedConfig(std::string format, std::string text, std::string file)
      : format_(std::move(format)), text_(std::move(text)), file_(std::move(file)) {}

  void add(Rule rule) { rules_.push_back(std::move(rule)); }
  // For rules whose order in the file would decide which applies; the order is lost when the JSON
  // object is read, so two such rules that disagree on a linear are an error.
  void add_unordered(Rule rule) { unordered_.push_back(std::move(rule)); }

  // The rule for the linear with these names: the matching unordered rule, else the first matching
  // one of the others. Null: none matches. Throws LoadError.
  const Rule* rule_of(std::span<const std::string> names) const;
  // The same for a linear that is stored quantised. An exception for it counts only if it holds
  // under all of its names: written for the names of another release, it may match none of the
  // names that the folder was written with. Then the rule of the first name that has a scheme
  // holds.
  const Rule* rule_of_stored(std::span<const std::string> names) const;

  const std::string& format() const { return format_; }
  const std::string& text() const { return text_; }
  const std::string& file() const { return file_; }
  // All schemes, e.g. "4 bits in groups of 128".
  std::string describe() const;

 private:
  std::string format_, text_, file_;
  std::vector<Rule> rules_, unordered_;
  mutable adapters::RegexBudget budget_;
};

// Absent if the configuration has none. For an unsupported method, format or option, throws a
// LoadError that names the key.
std::optional<QuantisedConfig> read_quantised_config(const ConfigReader& config);

// Readers by method. config: the section.
QuantisedConfig read_compressed_tensors_config(const ConfigReader& config);
QuantisedConfig read_gptq_config(const ConfigReader& config);
QuantisedConfig read_awq_config(const ConfigReader& config);
QuantisedConfig read_auto_round_config(const ConfigReader& config);
QuantisedConfig read_fp8_config(const ConfigReader& config);
QuantisedConfig read_bitsandbytes_config(const ConfigReader& config);

// Throws LoadError for the first key that is set (not null, false or empty). Each changes the
// answer in an unsupported way.
void refuse_set(const ConfigReader& config, std::initializer_list<const char*> keys);

}  // namespace valora::models
