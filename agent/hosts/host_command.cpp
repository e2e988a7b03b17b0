#include "agent/hosts/host_command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/plain_text.hpp"

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
  std::optional<std::string> word_;  // the word that is being read, possibly ""; unset: none has begun
  std::vector<std::string> words_;
};

}  // namespace

Result<std::vector<std::string>> shell_words(std::string_view text) {
  return Splitter(text).split();
}

namespace {

constexpr std::size_t stdout_limit = std::size_t{1} << 20;
constexpr std::size_t shown_stderr = 300;

// Returns 0, or the errno that says why the file cannot be executed.
int check_executable(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return errno;
  if (S_ISDIR(info.st_mode)) return EISDIR;
  return ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

Error not_executable(int cause) {
  std::string text = std::generic_category().message(cause);
  if (cause == EACCES) text += "; make it executable";
  return Error(Errc::unavailable, std::move(text));
}

// Returns the end of the text, because programs write the cause of a failure there.
std::string tail_of(const std::string& text) {
  std::string line = one_line(text, text.size());
  if (line.size() <= shown_stderr) return line;
  std::size_t begin = line.size() - shown_stderr;
  while (begin < line.size() && continues_character(line[begin])) ++begin;
  return "…" + line.substr(begin);
}

}  // namespace

HostCommand host_command(const std::vector<std::string>& words) {
  return {.program = words.front(), .args = {words.begin() + 1, words.end()}};
}

Result<std::string> find_program(const std::string& program, std::string_view search) {
  if (program.find('/') != std::string::npos) {
    const int cause = check_executable(program);
    if (cause != 0) return not_executable(cause);
    return program;
  }
  int best_cause = ENOENT;
  for (bool more = !program.empty(); more;) {
    const std::size_t end = search.find(':');
    const std::string_view directory = search.substr(0, end);
    // An empty entry in the search path means the working directory.
    std::string path = fmt::format("{}/{}", directory.empty() ? "." : directory, program);
    const int cause = check_executable(path);
    if (cause == 0) return path;
    if (cause == EACCES) best_cause = cause;
    more = end != std::string_view::npos;
    if (more) search.remove_prefix(end + 1);
  }
  if (best_cause == EACCES) return not_executable(best_cause);
  return Error(Errc::unavailable, "the program is not in PATH; install it, or write its absolute path");
}

std::string program_search_path() {
  if (const char* path = std::getenv("PATH")) return path;
  return "/bin:/usr/bin";  // default of posix_spawnp without PATH
}

Task<k8s::ChildOutcome> run_host_command(Clock& clock, HostCommand command, TimePoint deadline) {
  k8s::ChildCommand child;
  child.program = command.program;
  child.args = std::move(command.args);
  child.env = std::move(command.env);
  child.grace = command.grace;
  child.stdout_limit = stdout_limit;
  auto outcome = co_await k8s::run_child(clock, std::move(child), deadline);
  if (!outcome)
    co_return Error(outcome.error().code(),
                    fmt::format("{}: cannot be started: {}", command.program, outcome.error().message()));
  if (outcome->timed_out)
    co_return Error(
        Errc::timeout,
        fmt::format("{}: exceeded its time limit and was stopped{}", command.program,
                    command.repeatable ? "; run it on the machine yourself to see why it takes so long" : ""));
  co_return std::move(*outcome);
}

std::string describe_end(const k8s::ChildOutcome& outcome) {
  std::string end = fmt::format("exit status {}", outcome.exit_code);
  if (outcome.signal != 0) end = fmt::format("ended by signal {} ({})", outcome.signal, ::strsignal(outcome.signal));
  if (outcome.too_much_output) end = "printed more than 1 MiB, which is the limit";
  const std::string tail = tail_of(outcome.error_tail);
  return tail.empty() ? end : fmt::format("{}: {}", end, tail);
}

}  // namespace haulout::agent
