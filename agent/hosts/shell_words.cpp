#include "agent/hosts/shell_words.hpp"

namespace haulout::agent {
namespace {

class Splitter {
 public:
  explicit Splitter(std::string_view text) : rest_(text) {}

  Result<std::vector<std::string>> split() {
    if (rest_.find('\0') != std::string_view::npos) return Error(Errc::invalid, "it contains a NUL character");
    while (!rest_.empty()) {
      const char c = take();
      const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
      if (blank) {
        finish_word();
        continue;
      }
      const auto problem = c == '\'' ? single_quoted() : c == '"' ? double_quoted() : c == '\\' ? escaped() : plain(c);
      if (problem) return Error(Errc::invalid, *problem);
    }
    finish_word();
    return std::move(words_);
  }

 private:
  using Problem = std::optional<std::string>;

  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  std::string& word() {
    if (!word_) word_.emplace();
    return *word_;
  }
  void finish_word() {
    if (word_) words_.push_back(*std::move(word_));
    word_.reset();
  }
  Problem plain(char c) {
    word() += c;
    return {};
  }
  Problem single_quoted() {
    const std::size_t end = rest_.find('\'');
    if (end == std::string_view::npos) return "a ' is not closed";
    word() += rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return {};
  }
  Problem double_quoted() {
    word();
    while (!rest_.empty()) {
      const char c = take();
      if (c == '"') return {};
      const bool escape =
          c == '\\' && !rest_.empty() && std::string_view("\"\\$`\n").find(rest_.front()) != std::string_view::npos;
      if (!escape)
        word() += c;
      else if (const char meant = take(); meant != '\n')
        word() += meant;
    }
    return "a \" is not closed";
  }
  Problem escaped() {
    if (rest_.empty()) return "it ends in a \\, which escapes nothing";
    if (const char meant = take(); meant != '\n') word() += meant;
    return {};
  }

  std::string_view rest_;
  std::optional<std::string> word_;  // "" is a word, too
  std::vector<std::string> words_;
};

}  // namespace

Result<std::vector<std::string>> shell_words(std::string_view text) {
  return Splitter(text).split();
}

}  // namespace haulout::agent
