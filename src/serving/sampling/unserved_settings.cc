#include "serving/sampling/unserved_settings.h"

#include "base/text/strings.h"

namespace valora::serving {
namespace {

// Other settings that change the answers of transformers' generate(), with their neutral values.
struct Unserved {
  const char* key;
  double neutral = 0;
};
constexpr Unserved kUnserved[] = {{"num_beams", 1},
                                  {"num_beam_groups", 1},
                                  {"diversity_penalty"},
                                  {"no_repeat_ngram_size"},
                                  {"encoder_no_repeat_ngram_size"},
                                  {"encoder_repetition_penalty", 1},
                                  {"exponential_decay_length_penalty"},
                                  {"penalty_alpha"},
                                  {"dola_layers"},
                                  {"guidance_scale", 1},
                                  {"typical_p", 1},
                                  {"min_p"},
                                  {"top_h", 1},
                                  {"epsilon_cutoff"},
                                  {"eta_cutoff"},
                                  {"bad_words_ids"},
                                  {"suppress_tokens"},
                                  {"begin_suppress_tokens"},
                                  {"sequence_bias"},
                                  {"force_words_ids"},
                                  {"constraints"},
                                  {"forced_bos_token_id", -1},
                                  {"forced_eos_token_id", -1},
                                  {"token_healing"},
                                  {"watermarking_config"},
                                  {"stop_strings"},
                                  {"min_length"},
                                  {"min_new_tokens"},
                                  {"max_new_tokens", -1},
                                  {"max_time", -1},
                                  {"num_return_sequences", 1}};

bool is_set(const Json& value, double neutral) {
  if (value.is_number()) return value.get<double>() != neutral;
  return !(value.is_null() || value == false || value.empty());
}

}  // namespace

std::string unserved_settings(const Json& json) {
  std::string found;
  for (const auto& [key, neutral] : kUnserved)
    if (const auto it = json.find(key); it != json.end() && is_set(*it, neutral))
      found += (found.empty() ? "" : ", ") + std::string(key) + " " + shortened(it->dump(), 40);
  return found;
}

}  // namespace valora::serving
