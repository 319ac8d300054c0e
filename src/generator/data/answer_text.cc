#include "generator/data/answer_text.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <unordered_map>

namespace valora::generator {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return lower;
}

std::string folded(std::string_view text) { return lower_case(trimmed(text)); }

std::string answer_of(const Prediction& prediction) {
  std::string text = prediction.text;
  for (size_t i = 0; i < prediction.labels.size(); ++i)
    text = (i ? text + ", " : "") + prediction.labels[i];
  return text;
}

std::vector<std::string> references_of(const Sample& sample) {
  if (!sample.references.empty() || sample.answer.empty()) return sample.references;
  return {sample.answer};
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80; }
bool is_word(char c) { return is_digit(c) || is_letter(c); }

bool joins(char before, char c, char after) {
  if (c == '\'' || c == '-') return is_word(before) && is_word(after);
  return (c == '.' || c == ',') && is_digit(before) && is_digit(after);
}

// Replaces “ ” – … and other signs (U+2000 to U+203F) by a space, and ’ by an apostrophe, as in
// plain text.
std::string in_plain_signs(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool sign = i + 2 < text.size() && text.substr(i, 2) == "\xE2\x80";
    out += !sign ? text[i] : text[i + 2] == '\x99' ? '\'' : ' ';
    if (sign) i += 2;
  }
  return out;
}

}  // namespace

std::vector<std::string> caption_words(std::string_view caption) {
  const std::string text = lower_case(in_plain_signs(caption));
  std::vector<std::string> words;
  bool within = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool belongs = is_word(text[i]) || (within && i + 1 < text.size() &&
                                              joins(text[i - 1], text[i], text[i + 1]));
    if (belongs && !within) words.emplace_back();
    if (belongs) words.back() += text[i];
    within = belongs;
  }
  return words;
}

namespace {

constexpr std::string_view kPunctuation = ";/[]\"{}()=+\\_-><@`,?!";
constexpr std::array<std::string_view, 3> kArticles{"a", "an", "the"};

const std::unordered_map<std::string_view, std::string_view> kNumbers{
    {"none", "0"}, {"zero", "0"}, {"one", "1"},   {"two", "2"},   {"three", "3"}, {"four", "4"},
    {"five", "5"}, {"six", "6"},  {"seven", "7"}, {"eight", "8"}, {"nine", "9"},  {"ten", "10"}};

// The contractions of the published rule: a word that lacks an apostrophe gets it back.
constexpr const char* kContractions[] = {
    "ain't",          "aren't",       "can't",        "could've",   "couldn't",      "couldn't've",
    "didn't",         "doesn't",      "don't",        "hadn't",     "hadn't've",     "hasn't",
    "haven't",        "he'd",         "he'd've",      "he's",       "how'd",         "how'll",
    "how's",          "isn't",        "it'd",         "it'd've",    "it'll",         "ma'am",
    "mightn't",       "mightn't've",  "might've",     "mustn't",    "must've",       "needn't",
    "not've",         "o'clock",      "oughtn't",     "'ow's'at",   "shan't",        "she'd've",
    "should've",      "shouldn't",    "shouldn't've", "somebody'd", "somebody'd've", "somebody'll",
    "somebody's",     "someone'd",    "someone'd've", "someone'll", "someone's",     "something'd",
    "something'd've", "something'll", "that's",       "there'd",    "there'd've",    "there're",
    "there's",        "they'd",       "they'd've",    "they'll",    "they're",       "they've",
    "'twas",          "wasn't",       "we'd've",      "we've",      "weren't",       "what'll",
    "what're",        "what's",       "what've",      "when's",     "where'd",       "where's",
    "where've",       "who'd",        "who'd've",     "who'll",     "who's",         "who've",
    "why'll",         "why're",       "why's",        "won't",      "would've",      "wouldn't",
    "wouldn't've",    "y'all",        "y'all'll",     "y'all'd've", "you'd",         "you'd've",
    "you'll",         "you're",       "you've"};

using Contractions = std::unordered_map<std::string, std::string>;

Contractions with_one_apostrophe_less() {
  Contractions table;
  for (const std::string word : kContractions)
    for (size_t at = word.find('\''); at != word.npos; at = word.find('\'', at + 1)) {
      std::string less = word;
      less.erase(at, 1);
      table.emplace(std::move(less), word);
    }
  return table;
}

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

// Detects numbers like "1,000".
bool has_comma_in_number(std::string_view text) {
  for (size_t i = 1; i + 1 < text.size(); ++i)
    if (text[i] == ',' && is_decimal(text[i - 1]) && is_decimal(text[i + 1])) return true;
  return false;
}

// A sign is removed if it is next to a space anywhere in the text, or if the text has a number like
// 1,000; otherwise it becomes a space.
std::string without_signs(const std::string& text) {
  const bool all_vanish = has_comma_in_number(text);
  std::string vanishing;
  for (const char sign : kPunctuation)
    if (all_vanish || text.find({sign, ' '}) != text.npos || text.find({' ', sign}) != text.npos)
      vanishing += sign;
  std::string out;
  for (const char c : text) {
    if (vanishing.find(c) != vanishing.npos) continue;
    out += kPunctuation.find(c) != kPunctuation.npos ? ' ' : c;
  }
  return out;
}

// Keeps only full stops before a digit: "3.5".
std::string without_full_stops(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] != '.' || (i + 1 < text.size() && is_decimal(text[i + 1]))) out += text[i];
  return out;
}

std::string normalised_word(const std::string& word) {
  static const Contractions contractions = with_one_apostrophe_less();
  if (const auto number = kNumbers.find(word); number != kNumbers.end())
    return std::string(number->second);
  if (std::find(kArticles.begin(), kArticles.end(), word) != kArticles.end()) return {};
  const auto contraction = contractions.find(word);
  return contraction == contractions.end() ? word : contraction->second;
}

}  // namespace

std::string normalised_vqa_answer(std::string_view answer) {
  std::string text(trimmed(answer));
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  std::istringstream words(lower_case(without_full_stops(without_signs(text))));
  std::string out;
  for (std::string word; words >> word;) {
    const std::string normalised = normalised_word(word);
    if (!normalised.empty()) out += (out.empty() ? "" : " ") + normalised;
  }
  return out;
}

}  // namespace valora::generator
