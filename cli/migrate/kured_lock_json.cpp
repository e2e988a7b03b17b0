#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "cli/migrate/kured_call.hpp"
#include "cli/migrate/kured_lock.hpp"
#include "cli/migrate/kured_manifest.hpp"
#include "k8s/codec.hpp"

namespace haulout::cli {
namespace {

using Json = nlohmann::ordered_json;
using What = LockStep::What;

struct Lock {
  std::string key;  // of the annotation
  std::int64_t places = 1;
  std::string version;  // resourceVersion of the DaemonSet
  bool exists = false;
  bool of_several = false;  // the annotation has the format for several nodes
  Json entries = Json::array();
};

std::string holder_of(const Json& entry) {
  const auto node = entry.is_object() ? entry.find("nodeID") : entry.end();
  return entry.is_object() && node != entry.end() && node->is_string() ? node->get<std::string>() : "";
}

bool is_ours(const Json& entry) {
  return holder_of(entry) == lock_holder;
}

Error unreadable(const Lock& lock) {
  return Error(Errc::decode, fmt::format("the annotation {} has a value that is not a lock of kured, and kured itself "
                                         "cannot take it: look at it with kubectl, and remove it if no node reboots",
                                         lock.key));
}

// Reads the value of the annotation into the lock.
Result<> read_value(const std::string& value, Lock& lock) {
  const Json json = Json::parse(value, nullptr, false);
  if (!json.is_object()) return unreadable(lock);
  lock.exists = true;
  lock.of_several = json.contains("maxOwners") || json.contains("locks");
  if (!lock.of_several)
    lock.entries.push_back(json);
  else if (const auto locks = json.find("locks"); locks != json.end() && locks->is_array())
    lock.entries = *locks;
  else if (locks != json.end() && !locks->is_null())
    return unreadable(lock);
  for (const Json& entry : lock.entries)
    if (holder_of(entry).empty()) return unreadable(lock);
  return {};
}

Result<Lock> read_lock(std::string_view daemon_set) {
  auto call = read_kured_daemon_set(daemon_set);
  if (!call) return std::move(call).error();
  const KuredSettings settings(*std::move(call));
  Lock lock;
  for (const char* option : {"lock-annotation", "concurrency"})
    if (const KuredGiven* given = settings.given(option); given != nullptr && given->source)
      return Error(Errc::decode, fmt::format("--{} of kured was not read (it is in {}), so its lock is not known",
                                             option, *given->source));
  lock.key = settings.value("lock-annotation");
  const auto places = parse_number<std::int32_t>(settings.value("concurrency"));
  if (!places) return Error(Errc::decode, "--concurrency of kured is not a number, so its lock is not known");
  lock.places = std::max(*places, 1);
  const Json json = Json::parse(daemon_set, nullptr, false);
  const Json metadata = json.value("metadata", Json::object());
  if (!metadata.is_object()) return Error(Errc::decode, "the API server sent a DaemonSet without metadata");
  const auto version = metadata.find("resourceVersion");
  if (version == metadata.end() || !version->is_string())
    return Error(Errc::decode, "the API server sent a DaemonSet without resourceVersion");
  lock.version = version->get<std::string>();
  const auto annotations = metadata.find("annotations");
  if (annotations == metadata.end() || !annotations->is_object()) return lock;
  const auto value = annotations->find(lock.key);
  if (value == annotations->end()) return lock;
  if (!value->is_string()) return unreadable(lock);
  if (auto read = read_value(value->get<std::string>(), lock); !read) return std::move(read).error();
  return lock;
}

std::vector<std::string> others(const Lock& lock) {
  std::vector<std::string> nodes;
  for (const Json& entry : lock.entries)
    if (!is_ours(entry)) nodes.push_back(printable(holder_of(entry)));
  return nodes;
}

// Returns the patch that sets the annotation to this value; null removes it.
LockStep write(const Lock& lock, const Json& value, std::string message) {
  Json annotations = Json::object();
  annotations[lock.key] = value.is_null() ? value : Json(value.dump(-1, ' ', false, Json::error_handler_t::replace));
  const Json patch = {{"metadata", {{"resourceVersion", lock.version}, {"annotations", std::move(annotations)}}}};
  return {What::write, std::move(message), patch.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

// kured writes these fields in this order. A TTL of 0 means that the entry does not expire.
Json own_entry(WallTime now) {
  return {{"nodeID", std::string(lock_holder)},
          {"metadata", {{"unschedulable", false}}},
          {"created", k8s::format_time(now)},
          {"TTL", 0}};
}

}  // namespace

Result<LockStep> step_to_hold(std::string_view daemon_set, WallTime now) {
  const auto lock = read_lock(daemon_set);
  if (!lock) return lock.error();
  if (const auto nodes = others(*lock); !nodes.empty())
    return LockStep{
        What::refused,
        fmt::format("kured's lock is held by {}: it drains, reboots, or waits for its --lock-release-delay. "
                    "Try again when it has given the lock back; if it never will, because its Node is gone or "
                    "broken, remove the annotation {} by hand",
                    joined(nodes, ", "), lock->key)};
  const bool several = lock->places > 1;
  const std::string held =
      fmt::format("kured begins no further node: its lock (annotation {}) is held by {}", lock->key, lock_holder);
  if (lock->of_several == several && lock->entries.size() == static_cast<std::size_t>(lock->places))
    return LockStep{What::done, held};
  if (!several) return write(*lock, own_entry(now), held);
  Json entries = Json::array();
  for (std::int64_t place = 0; place < lock->places; ++place) entries.push_back(own_entry(now));
  return write(*lock, {{"maxOwners", lock->places}, {"locks", std::move(entries)}}, held);
}

Result<LockStep> step_to_release(std::string_view daemon_set) {
  auto lock = read_lock(daemon_set);
  if (!lock) return std::move(lock).error();
  const auto nodes = others(*lock);
  if (nodes.size() == lock->entries.size())
    return LockStep{nodes.empty() ? What::done : What::refused,
                    nodes.empty() ? "nobody holds kured's lock: there is nothing to give back"
                                  : fmt::format("kured's lock is held by {}, not by {}: it stays as it is",
                                                joined(nodes, ", "), lock_holder)};
  const std::string free = "kured's lock is given back: kured goes on with the next node that needs a reboot";
  if (nodes.empty()) return write(*lock, nullptr, free);
  Json entries = Json::array();
  for (const Json& entry : lock->entries)
    if (!is_ours(entry)) entries.push_back(entry);
  return write(*lock, {{"maxOwners", lock->places}, {"locks", std::move(entries)}}, free);
}

}  // namespace haulout::cli
