#include "mutator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>

namespace valora::fuzz {
namespace {

constexpr std::array<uint64_t, 12> kExtremes = {0,          1,          0x7F,       0x80,
                                                0xFF,       0x7FFF,     0x8000,     0xFFFF,
                                                0x7FFFFFFF, 0xFFFFFFFF, 1ull << 40, ~uint64_t{0}};
constexpr std::array kNumbers = {"0",
                                 "-1",
                                 "1",
                                 "2147483647",
                                 "2147483648",
                                 "-2147483649",
                                 "4294967296",
                                 "9223372036854775807",
                                 "9223372036854775808",
                                 "-9223372036854775808",
                                 "18446744073709551615",
                                 "18446744073709551616",
                                 "0.5",
                                 "-0.0",
                                 "1e308",
                                 "1e-320",
                                 "1e999"};

}  // namespace

std::string Mutator::next(size_t max_bytes) {
  std::string bytes = any_of_corpus();
  const size_t changes = 1 + below(8);
  for (size_t i = 0; i < changes; ++i) change(bytes);
  if (bytes.size() > max_bytes) bytes.resize(max_bytes);
  return bytes;
}

void Mutator::change(std::string& bytes) {
  switch (below(9)) {
    case 0: return flip_bit(bytes);
    case 1: return set_byte(bytes);
    case 2: return set_integer(bytes);
    case 3: return put_number(bytes);
    case 4: return put_word(bytes);
    case 5: return below(4) == 0 ? truncate(bytes) : flip_bit(bytes);
    case 6: return erase(bytes);
    case 7: return repeat(bytes);
    default: return splice(bytes);
  }
}

void Mutator::flip_bit(std::string& bytes) {
  if (!bytes.empty()) bytes[below(bytes.size())] ^= static_cast<char>(1 << below(8));
}

void Mutator::set_byte(std::string& bytes) {
  if (!bytes.empty()) bytes[below(bytes.size())] = static_cast<char>(below(256));
}

// Overwrites 1, 2, 4 or 8 bytes with an extreme value, in either byte order.
void Mutator::set_integer(std::string& bytes) {
  const size_t width = size_t{1} << below(4);
  if (bytes.size() < width) return;
  const uint64_t value = kExtremes[below(kExtremes.size())];
  std::array<char, 8> raw;
  for (size_t i = 0; i < width; ++i) raw[i] = static_cast<char>(value >> (8 * i));
  if (below(2) == 0) std::reverse(raw.begin(), raw.begin() + width);
  std::memcpy(bytes.data() + below(bytes.size() - width + 1), raw.data(), width);
}

// Replaces a number in the text, if any.
void Mutator::put_number(std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789";
  const size_t begin = bytes.find_first_of(kDigits, below(bytes.size() + 1));
  if (begin == bytes.npos) return;
  const size_t end = std::min(bytes.find_first_not_of(kDigits, begin), bytes.size());
  bytes.replace(begin, end - begin, kNumbers[below(kNumbers.size())]);
}

void Mutator::put_word(std::string& bytes) {
  if (dictionary_.empty()) return;
  const std::string& word = dictionary_[below(dictionary_.size())];
  const size_t at = below(bytes.size() + 1);
  bytes.replace(at, below(2) == 0 ? 0 : word.size(), word);
}

void Mutator::truncate(std::string& bytes) { bytes.resize(below(bytes.size() + 1)); }

void Mutator::erase(std::string& bytes) { bytes.erase(below(bytes.size() + 1), 1 + below(16)); }

void Mutator::repeat(std::string& bytes) {
  const size_t at = below(bytes.size() + 1);
  const std::string piece = bytes.substr(at, 1 + below(64));
  const size_t times = 1 + below(below(8) == 0 ? 256 : 4);
  std::string run;
  for (size_t i = 0; i < times; ++i) run += piece;
  bytes.insert(at, run);
}

void Mutator::splice(std::string& bytes) {
  const std::string& other = any_of_corpus();
  const size_t from = below(other.size() + 1);
  const size_t at = below(bytes.size() + 1);
  bytes.replace(at, below(bytes.size() - at + 1), other, from, below(other.size() - from + 1));
}

std::vector<std::string> parse_dictionary(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find('"'), end = line.rfind('"');
    if (line.starts_with('#') || begin == line.npos || begin == end) continue;
    std::string word;
    for (size_t i = begin + 1; i < end; ++i) {
      if (line[i] != '\\' || i + 1 == end) {
        word += line[i];
      } else if (line[++i] == 'x' && i + 2 < end) {
        word += static_cast<char>(std::stoi(line.substr(i + 1, 2), nullptr, 16));
        i += 2;
      } else {
        word += line[i];
      }
    }
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace valora::fuzz
