#include "agent/backends/debian_backend.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <boost/asio/this_coro.hpp>

#include "agent/backends/file_backend.hpp"
#include "base/plain_text.hpp"

namespace haulout::agent {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Returns the sort rank of the first character of a text between two numbers. The end of the text and a digit have rank
// 0.
int rank(std::string_view text) {
  if (text.empty() || is_digit(text.front())) return 0;
  const char c = text.front();
  if (c == '~') return -1;
  return static_cast<unsigned char>(c) + (is_letter(c) ? 0 : 256);
}

// Removes the number at the start and returns it without leading zeros.
std::string_view take_number(std::string_view& text) {
  while (text.starts_with('0')) text.remove_prefix(1);
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  const std::string_view number = text.substr(0, end);
  text.remove_prefix(end);
  return number;
}

bool is_release_candidate(std::string_view part) {
  return part.size() > 2 && part.starts_with("rc") && std::all_of(part.begin() + 2, part.end(), is_digit);
}

// Returns the version to compare: without the flavour, and with "~" before "rc", so that a release candidate sorts
// before its release.
std::string version_of(std::string_view release) {
  const std::size_t flavour = kernel_flavour(release).size();
  std::string version(release.substr(0, release.size() - (flavour == 0 ? 0 : flavour + 1)));
  const std::size_t candidate = version.find("-rc");
  if (candidate != std::string::npos) version[candidate] = '~';
  return version;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::weak_ordering compare_versions(std::string_view left, std::string_view right) {
  while (!left.empty() || !right.empty()) {
    while (rank(left) == rank(right) && rank(left) != 0) {
      left.remove_prefix(1);
      right.remove_prefix(1);
    }
    if (rank(left) != rank(right)) return rank(left) <=> rank(right);
    const std::string_view mine = take_number(left);
    const std::string_view theirs = take_number(right);
    if (mine.size() != theirs.size()) return mine.size() <=> theirs.size();
    if (mine != theirs) return mine <=> theirs;
  }
  return std::weak_ordering::equivalent;
}

std::string kernel_flavour(std::string_view release) {
  std::size_t begin = release.size();
  for (std::size_t end = release.size();;) {
    const std::size_t dash = end == 0 ? std::string_view::npos : release.rfind('-', end - 1);
    if (dash == std::string_view::npos) break;
    const std::string_view part = release.substr(dash + 1, end - dash - 1);
    if (part.empty() || !is_letter(part.front()) || is_release_candidate(part)) break;
    begin = dash + 1;
    end = dash;
  }
  return std::string(release.substr(begin));
}

std::optional<std::string> newer_kernel(std::string_view running, const std::vector<std::string>& names) {
  constexpr std::string_view prefix = "vmlinuz-";
  const std::string initrd = "initrd.img-";
  const std::string flavour = kernel_flavour(running);
  const bool needs_initrd = contains(names, initrd + std::string(running));
  std::optional<std::string> newest;
  for (const std::string& name : names) {
    if (!name.starts_with(prefix)) continue;
    const std::string release = name.substr(prefix.size());
    const bool candidate = kernel_flavour(release) == flavour && (!needs_initrd || contains(names, initrd + release));
    if (candidate && compare_versions(version_of(release), version_of(newest ? *newest : running)) > 0)
      newest = release;
  }
  return newest;
}

namespace asio = boost::asio;

namespace {

constexpr const char* sentinel = "/run/reboot-required";
constexpr const char* old_sentinel = "/var/run/reboot-required";
constexpr const char* packages_suffix = ".pkgs";
constexpr const char* boot = "/boot/";
constexpr std::size_t packages_limit = std::size_t{64} * 1024;
constexpr std::size_t shown_packages = 10;

std::vector<std::string> watched(const DebianBackend::Options& options) {
  std::vector<std::string> paths;
  for (const std::string path : {sentinel, old_sentinel}) {
    paths.push_back(path);
    paths.push_back(path + packages_suffix);
  }
  if (options.running_kernel) paths.emplace_back(boot);
  return paths;
}

}  // namespace

std::vector<std::string> package_reasons(std::string_view text, bool cut) {
  if (cut) text = text.substr(0, text.rfind('\n') + 1);
  std::vector<std::string> packages;
  std::set<std::string> seen;
  while (!text.empty()) {
    std::string package = one_line(take_line(text));
    if (!package.empty() && seen.insert(package).second) packages.push_back(std::move(package));
  }
  if (packages.size() <= shown_packages && !cut) return packages;
  const std::size_t more = packages.size() - std::min(packages.size(), shown_packages);
  packages.resize(std::min(packages.size(), shown_packages));
  if (!packages.empty())
    packages.push_back(fmt::format("and {}{} more", cut ? "at least " : "", std::max<std::size_t>(more, 1)));
  return packages;
}

DebianBackend::DebianBackend(HostRoot root, Clock& clock, Rng& rng, Options options)
    : root_(std::move(root)),
      clock_(clock),
      rng_(rng),
      options_(std::move(options)),
      watch_(root_, watched(options_)) {}

Pending DebianBackend::sentinel_answer(const std::string& path) const {
  Pending answer = read_sentinel(root_, path);
  if (answer.need != Need::yes) return answer;
  // The list of packages gives better reasons. If it cannot be read, keep the reason from the sentinel.
  const auto list = root_.read(path + packages_suffix, packages_limit);
  if (!list || !*list) return answer;
  std::vector<std::string> packages = package_reasons(**list, (*list)->size() == packages_limit);
  if (!packages.empty()) answer.reasons = std::move(packages);
  return answer;
}

Pending DebianBackend::kernel_answer(const std::string& running) const {
  const auto names = root_.list(boot);
  if (!names) return {.need = Need::unknown, .problem = names.error().message()};
  const bool any = *names && std::any_of((*names)->begin(), (*names)->end(),
                                         [](const std::string& name) { return name.starts_with("vmlinuz-"); });
  if (!any)
    return {.need = Need::unknown,
            .problem = fmt::format("{} {} any more, so it is unknown whether a new kernel needs a reboot: mount the "
                                   "host's /boot{}",
                                   root_.display(boot), *names ? "contains no kernel" : "does not exist",
                                   *names ? ", or restart the agent, which then ignores kernels" : "")};
  const auto newer = newer_kernel(running, **names);
  if (!newer) return {.need = Need::no};
  return {.need = Need::yes,
          .reasons = {fmt::format("kernel {} is installed, {} runs", one_line(*newer), one_line(running))}};
}

asio::awaitable<Pending> DebianBackend::pending(TimePoint) {
  watch_.arm(co_await asio::this_coro::executor);
  Pending answer = sentinel_answer(sentinel);
  const auto path = root_.locate(sentinel);
  const auto old_path = root_.locate(old_sentinel);
  const bool same = path && old_path && *path == *old_path;
  if (!same && answer.need != Need::yes) answer = either(std::move(answer), sentinel_answer(old_sentinel));
  if (options_.running_kernel && answer.need != Need::yes)
    answer = either(std::move(answer), kernel_answer(*options_.running_kernel));
  if (!options_.unseen_kernels.empty())
    answer = either(std::move(answer), Pending{.need = Need::unknown, .problem = options_.unseen_kernels});
  co_return answer;
}

Task<std::string> DebianBackend::booted(TimePoint) {
  co_return std::string();
}

Task<> DebianBackend::apply(std::string, TimePoint) {
  co_return Result<>();
}

asio::awaitable<void> DebianBackend::changed() {
  return watch_.changed(clock_, rng_);
}

}  // namespace haulout::agent
