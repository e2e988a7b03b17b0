#include "agent/gates/pause.hpp"

#include <fmt/format.h>

#include "agent/gates/gate.hpp"
#include "base/scope_exit.hpp"
#include "base/text.hpp"
#include "drain/reasons.hpp"
#include "k8s/codec.hpp"
#include "k8s/status.hpp"

namespace haulout::agent {

namespace {

constexpr std::string_view no_reason = "no reason given";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

Pause unreadable(std::string_view why, std::string_view reason) {
  return {fmt::format("{}{}annotation {}: {}; write \"2026-12-24T18:00:00Z; reason\", or \"; reason\" for no end",
                      reason, reason.empty() ? "" : " (", pause_annotation, why) +
          (reason.empty() ? "" : ")")};
}

}  // namespace

std::string pause_key(std::string_view pool) {
  return pool.empty() ? "pause" : fmt::format("pause.{}", pool);
}

Pause parse_pause_annotation(std::string_view value) {
  const std::size_t semicolon = value.find(';');
  // Control characters become blanks before blanks are trimmed, so that a reason of only control characters is empty.
  const std::string shown = printable(value);
  const std::string written(trimmed(shown));
  if (written.empty()) return {std::string(no_reason)};
  if (semicolon == std::string_view::npos) {
    if (const auto until = k8s::parse_time(trimmed(value))) return {std::string(no_reason), *until};
    return unreadable("it has no \";\" and is not a time", written);
  }
  const std::string reason(trimmed(printable(value.substr(semicolon + 1))));
  const std::string_view end = trimmed(value.substr(0, semicolon));
  Pause pause{reason.empty() ? std::string(no_reason) : reason};
  if (end.empty()) return pause;
  const auto until = k8s::parse_time(end);
  if (!until) return unreadable(fmt::format("\"{}\" is not a time in RFC 3339", printable(end)), reason);
  pause.until = *until;
  return pause;
}

std::string format_pause_annotation(const Pause& pause) {
  return fmt::format("{}; {}", pause.until ? k8s::format_time(*pause.until) : "", printable(pause.reason));
}

bool in_force(const Pause& pause, WallTime now) {
  return !pause.until || now < *pause.until;
}

std::string describe(const Pause& pause) {
  return pause.until ? fmt::format("paused until {}: {}", k8s::format_time(*pause.until), pause.reason)
                     : fmt::format("paused: {}", pause.reason);
}

namespace asio = boost::asio;

namespace {

// A forbidden read is repeated once after this time, because right after a reconnect the server's authorizer may be out
// of date.
constexpr Duration before_it_is_believed = std::chrono::seconds(1);
// Interval at which the agent checks, during a drain, whether it has been granted the permission to read the ConfigMap.
constexpr Duration off_holds = std::chrono::minutes(5);

std::vector<Gate> both(Gate gate) {
  Gate pool = gate;
  pool.name = "pause-pool";
  gate.name = "pause-cluster";
  return {std::move(pool), std::move(gate)};
}

}  // namespace

void PauseSource::belong_to(std::string pool) {
  pool_ = std::move(pool);
  view_.reset();
}

PauseSource::Texts PauseSource::texts_in(const std::map<std::string, std::string>& data) const {
  const auto at = [&](const std::string& key) {
    const auto found = data.find(key);
    return found == data.end() ? std::nullopt : std::optional(found->second);
  };
  return {at(pause_key(pool_)), at(pause_key())};
}

Task<PauseSource::Texts> PauseSource::get(TimePoint deadline) {
  auto map = co_await client_.get<k8s::ConfigMap>(ns_, std::string(pause_config_map), deadline);
  // A missing ConfigMap means that there is no pause.
  if (!map && k8s::is_gone(map.error())) co_return Texts{};
  if (!map) co_return std::move(map).error();
  co_return texts_in(map->data);
}

Task<PauseSource::Texts> PauseSource::read_once(TimePoint deadline) {
  return respite_.ask([this, deadline] { return get(deadline); });
}

Task<PauseSource::Texts> PauseSource::read(TimePoint deadline) {
  auto texts = co_await read_once(deadline);
  if (texts || !k8s::is_forbidden(texts.error()) || is_off_) co_return texts;
  const TimePoint again = client_.clock().now() + before_it_is_believed;
  if (again >= deadline) co_return texts;
  co_await client_.clock().sleep_until(again);
  co_return co_await read_once(deadline);
}

std::vector<Gate> PauseSource::rows_of(const Texts& texts) const {
  const WallTime now = client_.server_now();
  const auto row = [&](const char* name, const std::string& whom, const std::string& key,
                       const std::optional<std::string>& text) {
    Gate gate = pause_gate(name, whom, text ? std::optional(parse_pause_json(key, *text)) : std::nullopt, now);
    gate.look_again = by_own_clock(client_, gate.look_again);
    return gate;
  };
  return {row("pause-pool", "pool " + pool_, pause_key(pool_), texts.pool),
          row("pause-cluster", "the cluster", pause_key(), texts.cluster)};
}

std::vector<Gate> PauseSource::rows_when_off() const {
  Gate off{.verdict = Gate::Verdict::off};
  off.message =
      fmt::format("this credential may not read ConfigMap {}/{}, so pauses of pools and of the cluster have no effect",
                  ns_, pause_config_map);
  return both(std::move(off));
}

std::vector<Gate> PauseSource::rows_when_unknown(const Error& error) {
  const std::string problem = fmt::format("ConfigMap {}/{} cannot be read", ns_, pause_config_map);
  auto rows = both({.verdict = Gate::Verdict::not_asked, .message = problem});
  Gate& cluster = rows.back();
  cluster.verdict = Gate::Verdict::closed;
  cluster.reason = reason::pause_unknown;
  cluster.message = fmt::format("it is unknown whether updates are paused: {}: {}", problem, error.message());
  cluster.look_again = soon(client_.clock(), rng_);
  return rows;
}

asio::awaitable<std::vector<Gate>> PauseSource::judge(bool view_will_do, TimePoint deadline) {
  const TimePoint now = client_.clock().now();
  if (view_will_do && is_off_ && now < off_until_) co_return rows_when_off();
  if (view_will_do && view_) {
    seen_ = view_;
    co_return rows_of(*seen_);
  }
  auto texts = co_await read(deadline);
  is_off_ = !texts && k8s::is_forbidden(texts.error()) && !was_readable_;
  off_until_ = now + off_holds;
  if (is_off_) co_return rows_when_off();
  if (!texts) co_return rows_when_unknown(texts.error());
  was_readable_ = true;
  seen_ = *std::move(texts);
  co_return rows_of(*seen_);
}

asio::awaitable<void> PauseSource::changed() {
  k8s::ReflectorOptions options;
  options.ns = ns_;
  options.field_selector = "metadata.name=" + std::string(pause_config_map);
  const ScopeExit forget([this] { view_.reset(); });
  co_await until_differs<k8s::ConfigMap>(
      client_, rng_, respite_, options, [this](const k8s::Reflector<k8s::ConfigMap>& view) {
        const auto& all = view.objects();
        const Texts texts = all.empty() ? Texts{} : texts_in(all.begin()->second.data);
        view_ = view.health().connected ? std::optional(texts) : std::nullopt;
        return !seen_ || texts != *seen_;
      });
}

}  // namespace haulout::agent
