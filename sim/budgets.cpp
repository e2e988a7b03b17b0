#include "sim/budgets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "k8s/codec.hpp"
#include "sim/store.hpp"

namespace haulout::sim {

std::vector<Object> pods_of_budget(const Store& store, const Json& budget) {
  Selection selection;
  selection.resource = "pods";
  selection.ns = ns_of(budget);
  selection.labels = Selector::from_object(at(budget, "/spec/selector"));
  return store.select(selection);
}

std::vector<Object> budgets_of_pod(const Store& store, const Json& pod) {
  const std::string ns = ns_of(pod);
  std::vector<Object> result;
  const auto collect = [&](const std::string& demand) {
    for (Object& budget : store.list("poddisruptionbudgets", ns, By::demand, demand))
      if (Selector::from_object(at(*budget, "/spec/selector")).matches(pod)) result.push_back(std::move(budget));
  };
  collect("");
  const Json& labels = at(pod, "/metadata/labels");
  if (labels.is_object())
    for (const auto& [key, value] : labels.items())
      if (value.is_string()) collect(label_term(key, value.get<std::string>()));
  std::sort(result.begin(), result.end(),
            [](const Object& one, const Object& other) { return name_of(*one) < name_of(*other); });
  return result;
}

namespace {

std::set<Key> budgets_selecting(const Store& store, const Object& pod) {
  std::set<Key> keys;
  if (!pod) return keys;
  for (const Object& budget : budgets_of_pod(store, *pod))
    keys.insert({"poddisruptionbudgets", ns_of(*pod), name_of(*budget)});
  return keys;
}

// A budget counts such pods.
bool is_healthy(const Json& pod) {
  return !terminating(pod) && pod_ready(pod);
}

bool is_percentage(const Json& value) {
  return value.is_string() && value.get<std::string>().ends_with('%');
}

std::int64_t integer(std::string_view text) {
  std::int64_t amount = 0;
  // std::from_chars() ignores a "%" after the number; parse_number() would return nullopt.
  std::from_chars(text.data(), text.data() + text.size(), amount);
  return amount;
}

}  // namespace

std::int64_t scaled(const Json& value, std::int64_t total) {
  if (value.is_number()) return value.get<std::int64_t>();
  if (!value.is_string()) return 0;
  const std::int64_t amount = integer(value.get<std::string>());
  return is_percentage(value) ? (amount * total + 99) / 100 : amount;
}

DisruptionController::DisruptionController(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) {
    const std::string& resource = change.key.resource;
    if (resource == "poddisruptionbudgets") {
      const bool same = change.before && change.type != ChangeType::deleted &&
                        at(*change.before, "/spec/selector") == at(*change.object, "/spec/selector");
      if (!same) pods_.erase(change.key);
      return look_later(change.key, world_.timing.disruption_lag);
    }
    if (resource == "pods") pod_changed(change);
    if (resource == "replicasets" || resource == "statefulsets" || resource == "deployments")
      for (const Object& budget : world_.store.list("poddisruptionbudgets", change.key.ns))
        look_later({"poddisruptionbudgets", change.key.ns, name_of(*budget)}, world_.timing.disruption_lag);
  });
}

void DisruptionController::pod_changed(const Change& change) {
  std::set<Key> concerned = budgets_selecting(world_.store, change.object);
  const std::set<Key> now = change.type == ChangeType::deleted ? std::set<Key>() : concerned;
  constexpr const char* labels = "/metadata/labels";
  if (change.before && at(*change.before, labels) != at(*change.object, labels))
    concerned.merge(budgets_selecting(world_.store, change.before));
  for (const Key& budget : concerned) {
    if (const auto known = pods_.find(budget); known != pods_.end()) {
      if (now.contains(budget))
        known->second.put(change.object);
      else
        known->second.remove(change.key.name);
    }
    look_later(budget, world_.timing.disruption_lag);
  }
}

void DisruptionController::Pods::put(const Object& pod) {
  const auto [entry, is_new] = pods_.try_emplace(name_of(*pod), pod);
  if (is_new) return count(*pod, 1);
  const Object before = std::exchange(entry->second, pod);
  count(*before, -1);
  count(*pod, 1);
}

void DisruptionController::Pods::remove(const std::string& name) {
  const auto known = pods_.find(name);
  if (known == pods_.end()) return;
  count(*known->second, -1);
  pods_.erase(known);
}

void DisruptionController::Pods::count(const Json& pod, int by) {
  if (is_healthy(pod)) healthy_ += by;
  const Json& reference = controller_of(pod);
  if (reference.is_null()) return;
  auto owner =
      std::find_if(owners_.begin(), owners_.end(), [&](const Owner& known) { return known.reference == reference; });
  if (owner == owners_.end()) owner = owners_.insert(owner, {reference, 0});
  owner->pods += by;
  if (owner->pods == 0) owners_.erase(owner);
}

Object DisruptionController::Pods::find(const std::string& name) const {
  const auto known = pods_.find(name);
  return known == pods_.end() ? nullptr : known->second;
}

const DisruptionController::Pods& DisruptionController::pods_of(const Key& key, const Json& budget) {
  const auto [entry, is_new] = pods_.try_emplace(key);
  if (is_new)
    for (const Object& pod : pods_of_budget(world_.store, budget)) entry->second.put(pod);
  return entry->second;
}

void DisruptionController::resync() {
  for (const Object& budget : world_.store.list("poddisruptionbudgets"))
    look_later({"poddisruptionbudgets", ns_of(*budget), name_of(*budget)}, world_.timing.disruption_lag);
}

void DisruptionController::look_later(const Key& budget, Duration delay) {
  if (delay == world_.timing.disruption_lag && !planned_.insert(budget).second) return;
  world_.agenda.after(delay, [this, budget] {
    planned_.erase(budget);
    if (world_.switches.disruption_controller) sync(budget);
  });
}

namespace {

// What the controller writes into the status of a budget.
struct Status {
  std::int64_t healthy;
  std::int64_t desired;
  std::int64_t expected;
  std::int64_t allowed;
  std::int64_t generation;
  Json disrupted;

  const char* holds() const { return allowed > 0 ? "True" : "False"; }
  const char* reason() const { return allowed > 0 ? "SufficientPods" : "InsufficientPods"; }
};

// Returns true if a write would change nothing. Most looks at a budget find that, and a write copies the whole object
// before it finds it.
bool shows(const Json& budget, const Status& status) {
  const Json& shown = at(budget, "/status");
  const Json& allowed = condition(budget, "DisruptionAllowed");
  const auto is = [](const Json& object, const char* field, std::int64_t value) {
    return at(object, field) == Json(value);
  };
  constexpr std::size_t members_of_condition = 6;
  return is(shown, "/currentHealthy", status.healthy) && is(shown, "/desiredHealthy", status.desired) &&
         is(shown, "/expectedPods", status.expected) && is(shown, "/disruptionsAllowed", status.allowed) &&
         is(shown, "/observedGeneration", status.generation) &&
         (status.disrupted.empty() ? !shown.contains("disruptedPods")
                                   : at(shown, "/disruptedPods") == status.disrupted) &&
         allowed.size() == members_of_condition && is_text(allowed, "/status", status.holds()) &&
         is_text(allowed, "/reason", status.reason()) && at(allowed, "/message") == "" &&
         is(allowed, "/observedGeneration", status.generation) && at(allowed, "/lastTransitionTime").is_string();
}

void write(Json& budget, const Status& status, WallTime now) {
  Json& shown = budget["status"];
  shown["currentHealthy"] = status.healthy;
  shown["desiredHealthy"] = status.desired;
  shown["expectedPods"] = status.expected;
  shown["disruptionsAllowed"] = status.allowed;
  shown["observedGeneration"] = status.generation;
  if (status.disrupted.empty())
    shown.erase("disruptedPods");
  else
    shown["disruptedPods"] = status.disrupted;
  set_condition(budget,
                object_of({{"type", "DisruptionAllowed"},
                           {"status", status.holds()},
                           {"reason", status.reason()},
                           {"message", ""},
                           {"observedGeneration", status.generation}}),
                now);
}

}  // namespace

std::optional<std::int64_t> DisruptionController::sum_of_scales(const Json& budget, const Pods& pods,
                                                                std::string* problem) const {
  if (const std::string told = annotation(budget, "sim.haulout.dev/expects-pods"); !told.empty()) return integer(told);
  const std::string ns = ns_of(budget);
  std::map<std::string, std::int64_t> scales;  // number of replicas of each controller; key: its UID
  for (const auto& [owner, count] : pods.owners()) {
    const ResourceInfo* info = find_kind(text(owner, "/kind"));
    const Object set = info ? world_.store.get({std::string(info->resource), ns, text(owner, "/name")}) : nullptr;
    const bool scalable = info && (info->resource == "replicasets" || info->resource == "statefulsets" ||
                                   info->resource == "replicationcontrollers" || info->resource == "deployments");
    if (!scalable) {
      *problem =
          fmt::format("no matches for kind \"{}\" in version \"{}\"", text(owner, "/kind"), text(owner, "/apiVersion"));
      return std::nullopt;
    }
    if (!set || uid_of(*set) != text(owner, "/uid")) continue;
    const Json& above = controller_of(*set);
    const Object deployment =
        text(above, "/kind") == "Deployment" ? world_.store.get({"deployments", ns, text(above, "/name")}) : nullptr;
    const Json& scaled_object = deployment ? *deployment : *set;
    scales[uid_of(scaled_object)] = number(scaled_object, "/spec/replicas", 1);
  }
  std::int64_t sum = 0;
  for (const auto& [uid, scale] : scales) sum += scale;
  return sum;
}

std::optional<DisruptionController::Expectation> DisruptionController::expectation(const Json& budget, const Pods& pods,
                                                                                   std::string* problem) const {
  const Json& max_unavailable = at(budget, "/spec/maxUnavailable");
  const Json& min_available = at(budget, "/spec/minAvailable");
  if (!max_unavailable.is_null() || is_percentage(min_available)) {
    const auto expected = sum_of_scales(budget, pods, problem);
    if (!expected) return std::nullopt;
    if (max_unavailable.is_null()) return Expectation{*expected, scaled(min_available, *expected)};
    return Expectation{*expected, std::max<std::int64_t>(0, *expected - scaled(max_unavailable, *expected))};
  }
  const auto count = static_cast<std::int64_t>(pods.size());
  return Expectation{count, scaled(min_available, count)};
}

void DisruptionController::sync(const Key& key) {
  const Object budget = world_.store.get(key);
  if (!budget) return;
  heal_stale_targets(key.ns);
  const Pods& pods = pods_of(key, *budget);
  std::string problem;
  const auto expected = expectation(*budget, pods, &problem);
  if (!expected) return fail(key, problem);

  const WallTime now = world_.wall_now();
  const auto timeout = std::chrono::duration_cast<std::chrono::microseconds>(world_.timing.disruption_timeout);
  Json disrupted = Json::object();
  std::int64_t healthy = pods.healthy();
  const Json& entries = at(*budget, "/status/disruptedPods");
  if (entries.is_object())
    for (const auto& [name, since] : entries.items()) {
      const Object pod = pods.find(name);
      const auto begun = k8s::parse_time(since.is_string() ? since.get<std::string>() : "");
      if (!pod || terminating(*pod) || !begun || *begun + timeout < now) continue;
      disrupted[name] = since;
      if (is_healthy(*pod)) --healthy;
      look_later(key, std::chrono::duration_cast<Duration>(*begun + timeout - now) + std::chrono::milliseconds(100));
    }
  const std::int64_t allowed = expected->expected <= 0 ? 0 : std::max<std::int64_t>(0, healthy - expected->desired);

  const Status status{healthy,
                      expected->desired,
                      expected->expected,
                      allowed,
                      number(*budget, "/metadata/generation", 1),
                      std::move(disrupted)};
  if (!shows(*budget, status)) world_.store.modify(key, [&](Json& next) { write(next, status, now); });
}

// Writes the status after an error, as the real controller does (which calls this fail-safe): no disruption is allowed,
// and observedGeneration stays the same.
void DisruptionController::fail(const Key& key, const std::string& problem) {
  world_.store.modify(key, [&](Json& next) {
    Json& status = next["status"];
    status["disruptionsAllowed"] = 0;
    for (const char* field : {"currentHealthy", "desiredHealthy", "expectedPods"})
      if (!status.contains(field)) status[field] = 0;
    set_condition(next,
                  {{"type", "DisruptionAllowed"}, {"status", "False"}, {"reason", "SyncFailed"}, {"message", problem}},
                  world_.wall_now());
  });
}

// Sets the condition DisruptionTarget to False on pods whose eviction did not lead to a deletion in time.
void DisruptionController::heal_stale_targets(const std::string& ns) {
  const WallTime now = world_.wall_now();
  const auto timeout = std::chrono::duration_cast<std::chrono::microseconds>(world_.timing.disruption_timeout);
  for (const Object& pod : world_.store.list("pods", ns, By::disrupted, "True")) {
    const Json& target = condition(*pod, "DisruptionTarget");
    if (terminating(*pod) || pod_finished(*pod)) continue;
    const auto since = k8s::parse_time(text(target, "/lastTransitionTime"));
    if (!since || *since + timeout > now) continue;
    world_.store.modify({"pods", ns, name_of(*pod)}, [&](Json& next) {
      set_condition(next, {{"type", "DisruptionTarget"}, {"status", "False"}}, now);
    });
  }
}

}  // namespace haulout::sim
