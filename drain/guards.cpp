#include "drain/guards.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace haulout::drain {

namespace {

// Upper bound of a share. It is far above the replicas of any controller and keeps the arithmetic from overflowing.
constexpr std::uint32_t most_pods = 1'000'000;

}  // namespace

Result<Share> parse_share(std::string_view text) {
  Share share;
  share.percent = text.ends_with('%');
  const std::string_view digits = share.percent ? text.substr(0, text.size() - 1) : text;
  const auto value = parse_number<std::uint32_t>(digits);
  if (!value)
    return Error(Errc::invalid, fmt::format("'{}' is neither a number of pods nor a percentage such as 25%", text));
  if (*value == 0)
    return Error(
        Errc::invalid,
        fmt::format(
            "'{}' would never allow an eviction: use at least 1, or --single-replica=block to protect single replicas",
            text));
  if (share.percent && *value > 100) return Error(Errc::invalid, "a percentage is at most 100%");
  share.value = std::min(*value, most_pods);
  return share;
}

std::string to_string(const Share& share) {
  return fmt::format("{}{}", share.value, share.percent ? "%" : "");
}

std::size_t share_of(const Share& share, std::optional<std::int32_t> replicas) {
  if (!share.percent) return share.value;
  const auto all = static_cast<std::uint64_t>(std::max(0, replicas.value_or(1)));
  return static_cast<std::size_t>(std::max<std::uint64_t>(1, all * share.value / 100));
}

std::optional<SingleReplica> parse_single_replica(std::string_view text) {
  for (const SingleReplica policy : {SingleReplica::allow, SingleReplica::warn, SingleReplica::block})
    if (text == to_string(policy)) return policy;
  return std::nullopt;
}

std::string_view to_string(SingleReplica policy) {
  switch (policy) {
    case SingleReplica::allow: return "allow";
    case SingleReplica::warn: return "warn";
    case SingleReplica::block: return "block";
  }
  return "";
}

}  // namespace haulout::drain
