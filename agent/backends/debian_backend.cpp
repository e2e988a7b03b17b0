#include "agent/backends/debian_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>

#include "agent/backends/kernel_release.hpp"
#include "agent/backends/sentinel.hpp"
#include "base/plain_text.hpp"

namespace haulout::agent {
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
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string package = one_line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
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
  // The list of packages gives better reasons. If it cannot be read, the answer stays the same.
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
            .problem = fmt::format("{} holds no kernel to compare the running one with; mount the host's /boot, or "
                                   "switch the comparison off",
                                   root_.display(boot))};
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
