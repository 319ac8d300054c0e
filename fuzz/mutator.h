// Generates seeded mutations of fuzz inputs, the same on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace valora::fuzz {

class Mutator {
 public:
  // The corpus must not be empty. Dictionary words are inserted into inputs unchanged.
  Mutator(std::vector<std::string> corpus, std::vector<std::string> dictionary, uint64_t seed)
      : corpus_(std::move(corpus)), dictionary_(std::move(dictionary)), random_(seed) {}

  // A copy of a random corpus input with a few changes.
  std::string next(size_t max_bytes);

 private:
  size_t below(size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(random_() % bound); }
  const std::string& any_of_corpus() { return corpus_[below(corpus_.size())]; }
  void change(std::string& bytes);

  void flip_bit(std::string& bytes);
  void set_byte(std::string& bytes);
  void set_integer(std::string& bytes);
  void put_number(std::string& bytes);
  void put_word(std::string& bytes);
  void truncate(std::string& bytes);
  void erase(std::string& bytes);
  void repeat(std::string& bytes);
  void splice(std::string& bytes);

  const std::vector<std::string> corpus_;
  const std::vector<std::string> dictionary_;
  std::mt19937_64 random_;
};

// Reads a dictionary in libFuzzer's format: one `name="value"` or `"value"` per line, with the
// escapes \xAB, \" and \\.
std::vector<std::string> parse_dictionary(const std::string& text);

}  // namespace valora::fuzz
