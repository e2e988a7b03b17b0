#include "drain/pod_rules.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cctype>

#include "base/duration.hpp"

namespace haulout::drain {

namespace {

constexpr std::string_view wait_action = "wait-completed";

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// Returns the name of the Deployment of a ReplicaSet's pod, or an empty string. A Deployment names its ReplicaSets
// NAME-HASH and labels their pods with the hash. While a drain has taken the label off, its mark holds the hash.
std::string deployment_of(const k8s::Pod& pod) {
  if (!pod.controller || pod.controller->kind != "ReplicaSet") return {};
  const auto hash =
      pod.surged() ? std::optional(pod.surge_mark->hash) : k8s::value_at(pod.labels, k8s::template_hash_label);
  if (!hash || hash->empty()) return {};
  const std::string& name = pod.controller->name;
  const std::string tail = fmt::format("-{}", *hash);
  return name.size() > tail.size() && name.ends_with(tail) ? name.substr(0, name.size() - tail.size()) : std::string();
}

bool has_kind(const k8s::Pod& pod, std::string_view kind) {
  if (!pod.controller) return false;
  return same_word(pod.controller->kind, kind) || (same_word(kind, "Deployment") && !deployment_of(pod).empty());
}

bool is_owned_by(const k8s::Pod& pod, const PodRule::Owner& owner) {
  if (!pod.controller || pod.ns != owner.ns) return false;
  if (same_word(pod.controller->kind, owner.kind)) return pod.controller->name == owner.name;
  return same_word(owner.kind, "Deployment") && deployment_of(pod) == owner.name;
}

Error wrong(std::string_view why) {
  return Error(
      Errc::invalid,
      fmt::format("{}; write WHO=ACTION, like kind:Job=wait-completed=2h or namespace:batch,app=db=last", why));
}

// Cuts ACTION off the end of `text` and writes it to the rule. Returns false if `text` ends with no action.
Result<bool> take_action(std::string_view& text, PodRule& rule) {
  constexpr std::array<std::pair<std::string_view, PodAction>, 4> words{{{"evict", PodAction::evict},
                                                                         {"skip", PodAction::skip},
                                                                         {"last", PodAction::last},
                                                                         {wait_action, PodAction::wait_completed}}};
  for (const auto& [word, action] : words) {
    if (!text.ends_with(fmt::format("={}", word))) continue;
    rule.action = action;
    text.remove_suffix(word.size() + 1);
    return true;
  }
  const std::string with_limit = fmt::format("={}=", wait_action);
  const std::size_t found = text.rfind(with_limit);
  if (found == std::string_view::npos) return false;
  const std::string_view written = text.substr(found + with_limit.size());
  const auto limit = parse_duration(written);
  if (!limit) return limit.error();
  if (*limit <= Duration::zero())
    return Error(Errc::invalid,
                 fmt::format("the limit of {} must be longer than 0, and is '{}'", wait_action, written));
  rule.action = PodAction::wait_completed;
  rule.limit = *limit;
  text = text.substr(0, found);
  return true;
}

bool is_kind(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// Returns true for a text that may be the name of an object: a DNS subdomain.
bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && is_letter(text.front()) && is_letter(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || c == '-' || c == '.'; });
}

Result<> take_part(std::string_view part, std::string_view value, PodRule& rule) {
  if (value.empty()) return Error(Errc::invalid, fmt::format("nothing is written after {}:", part));
  if (part == "namespace" && !is_name(value))
    return Error(Errc::invalid, fmt::format("'{}' is not the name of a namespace", value));
  if (part == "kind" && !is_kind(value)) return Error(Errc::invalid, fmt::format("'{}' is not a kind", value));
  // A CronJob owns Jobs, and the Jobs own the pods. A rule that matches nothing would leave the pods unprotected.
  if (part == "kind" && same_word(value, "CronJob"))
    return Error(Errc::invalid, "no pod has a CronJob as its controller: write kind:Job");
  std::string* field = part == "namespace" ? &rule.ns : part == "kind" ? &rule.kind : nullptr;
  if (field ? !field->empty() : rule.controller.has_value())
    return Error(Errc::invalid, fmt::format("{}: is written twice", part));
  if (field) {
    *field = value;
    return {};
  }
  const std::size_t first = value.find('/');
  const std::size_t second = first == std::string_view::npos ? first : value.find('/', first + 1);
  const auto name = second == std::string_view::npos ? std::string_view() : value.substr(second + 1);
  const auto kind = value.substr(0, first);
  const auto ns = second == std::string_view::npos ? std::string_view() : value.substr(first + 1, second - first - 1);
  if (!is_kind(kind) || !is_name(ns) || !is_name(name))
    return Error(Errc::invalid, fmt::format("'{}' is no controller: write KIND/NAMESPACE/NAME", value));
  rule.controller = PodRule::Owner{std::string(kind), std::string(ns), std::string(name)};
  return {};
}

}  // namespace

bool PodRule::matches(const k8s::Pod& pod) const {
  return (ns.empty() || pod.ns == ns) && (kind.empty() || has_kind(pod, kind)) &&
         (!controller || is_owned_by(pod, *controller)) && selector.matches(pod.labels);
}

Duration longest_limit(const std::vector<PodRule>& rules) {
  Duration longest{};
  for (const PodRule& rule : rules) longest = std::max(longest, rule.limit.value_or(Duration::zero()));
  return longest;
}

Result<PodRule> parse_pod_rule(std::string_view text) {
  PodRule rule;
  rule.text = text;
  auto has_action = take_action(text, rule);
  if (!has_action) return wrong(has_action.error().message());
  if (!*has_action)
    return wrong("it does not end with an action: =evict, =skip, =last, =wait-completed or =wait-completed=DURATION");
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view part : {"namespace", "kind", "controller"}) {
      if (!text.starts_with(fmt::format("{}:", part))) continue;
      const std::string_view value = text.substr(part.size() + 1, text.find(',') - part.size() - 1);
      if (auto taken = take_part(part, value, rule); !taken) return wrong(taken.error().message());
      text.remove_prefix(std::min(text.size(), part.size() + 1 + value.size() + 1));
      again = true;
      break;
    }
  }
  auto selector = k8s::parse_label_selector(text);
  if (!selector) return wrong(selector.error().message());
  rule.selector = *std::move(selector);
  for (const auto& requirement : rule.selector.requirements())
    if (requirement.key == "namespace" || requirement.key == "kind" || requirement.key == "controller")
      return wrong(fmt::format("{0}= selects pods by a label with the key {0}; write {0}: instead", requirement.key));
  if (rule.ns.empty() && rule.kind.empty() && !rule.controller && rule.selector.empty())
    return wrong("it names no pods, so it would match every pod");
  return rule;
}

std::optional<PodHandling> handling_of(const k8s::Pod& pod, const std::vector<PodRule>& rules,
                                       ClusterApiLabels labels) {
  if (labels != ClusterApiLabels::off) {
    const auto value = k8s::value_at(pod.labels, cluster_api_label).value_or("");
    const auto asked = [&](PodAction action) {
      return PodHandling{action, {}, fmt::format("label {}={}", cluster_api_label, value)};
    };
    if (labels == ClusterApiLabels::all && same_word(value, "skip")) return asked(PodAction::skip);
    if (same_word(value, wait_action) || same_word(value, "waitcompleted")) return asked(PodAction::wait_completed);
  }
  for (const PodRule& rule : rules)
    if (rule.matches(pod)) return PodHandling{rule.action, rule.limit, fmt::format("rule {}", rule.text)};
  return std::nullopt;
}

}  // namespace haulout::drain
