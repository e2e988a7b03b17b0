#include "agent/backends/kernel_release.hpp"

#include <algorithm>

namespace haulout::agent {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Sort rank of the first character, between two numbers. The end of the text and a digit have rank 0.
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

// The version to compare: without the flavour, and with "~" before "rc", so that a release candidate sorts before its
// release.
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

}  // namespace haulout::agent
