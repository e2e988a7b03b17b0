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

// Of kured's lock. Each has an entry of about a hundred bytes, and the annotations of an object may have 256 KiB.
constexpr std::int32_t most_places = 1000;

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

// Returns the time limit of an entry. Zero: it has none.
std::chrono::nanoseconds limit_of(const Json& entry) {
  const auto ttl = entry.find("TTL");
  return std::chrono::nanoseconds(ttl != entry.end() && ttl->is_number_integer() ? ttl->get<std::int64_t>() : 0);
}

// Returns true if kured counts the entry as free, by its own rule.
bool has_expired(const Json& entry, WallTime now) {
  const auto created = entry.find("created");
  if (limit_of(entry) <= Duration::zero() || created == entry.end() || !created->is_string()) return false;
  const auto since = k8s::parse_time(created->get<std::string>());
  return since && now - *since >= limit_of(entry);
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

// Fails if the value of an option that is about the lock was not read.
Result<> expect_read(const KuredSettings& settings, std::string_view option) {
  if (const KuredGiven* given = settings.given(option); given != nullptr && given->source)
    return Error(Errc::decode, fmt::format("--{} of kured was not read (it is in {}), so its lock is not known", option,
                                           *given->source));
  return {};
}

// Returns the metadata of an object as the API server sends it; null if it has none.
Json metadata_of(std::string_view object) {
  Json json = Json::parse(object, nullptr, false);
  const auto metadata = json.find("metadata");
  return metadata != json.end() && metadata->is_object() ? std::move(*metadata) : Json();
}

std::string own_namespace(std::string_view daemon_set) {
  const Json metadata = metadata_of(daemon_set);
  const auto ns = metadata.find("namespace");
  return ns != metadata.end() && ns->is_string() ? ns->get<std::string>() : "";
}

Result<Lock> read_lock(std::string_view kured, std::string_view place) {
  auto call = read_kured_daemon_set(kured);
  if (!call) return std::move(call).error();
  const KuredSettings settings(*std::move(call));
  Lock lock;
  for (const char* option : {"lock-annotation", "concurrency"})
    if (auto read = expect_read(settings, option); !read) return std::move(read).error();
  lock.key = settings.value("lock-annotation");
  const auto places = parse_number<std::int32_t>(settings.value("concurrency"));
  if (!places) return Error(Errc::decode, "--concurrency of kured is not a number, so its lock is not known");
  if (*places > most_places)
    return Error(Errc::decode,
                 fmt::format("--concurrency={} of kured is too large: a lock with more than {} places cannot "
                             "be taken, so remove kured instead",
                             *places, most_places));
  lock.places = std::max(*places, 1);
  const Json metadata = metadata_of(place);
  if (metadata.is_null()) return Error(Errc::decode, "the API server sent a DaemonSet without metadata");
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

std::vector<Json> of_others(const Lock& lock) {
  std::vector<Json> entries;
  std::ranges::copy_if(lock.entries, std::back_inserter(entries), [](const Json& entry) { return !is_ours(entry); });
  return entries;
}

std::string names_of(const std::vector<Json>& entries) {
  std::vector<std::string> nodes;
  nodes.reserve(entries.size());
  for (const Json& entry : entries) nodes.push_back(printable(holder_of(entry)));
  return joined(nodes, ", ");
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

// What the nodes do that hold the lock, and what to do if one never ends.
std::string what_holders_do(const Lock& lock) {
  return fmt::format(
      "drains, reboots, or waits for its --lock-release-delay. {} when it has given {} back; if it never "
      "will, because its Node is gone or broken, remove the annotation {} by hand",
      lock.of_several ? "Run this again" : "Try again", lock.of_several ? "its place" : "the lock", lock.key);
}

// Adds entries for all places to those of nodes, so that kured counts no place as free.
LockStep step_beside(const Lock& lock, const std::vector<Json>& holders, WallTime now) {
  const bool limited =
      std::ranges::any_of(holders, [](const Json& entry) { return limit_of(entry) > Duration::zero(); });
  const std::string message =
      fmt::format("kured begins no further node{}, but {} still has its place of the lock: it {}",
                  limited ? " until its --lock-ttl is over" : "", names_of(holders), what_holders_do(lock));
  const auto ours = static_cast<std::size_t>(lock.places);
  if (lock.entries.size() == holders.size() + ours) return {What::refused, message};
  Json entries(holders);
  for (std::size_t place = 0; place < ours; ++place) entries.push_back(own_entry(now));
  LockStep step = write(lock, {{"maxOwners", lock.places}, {"locks", std::move(entries)}}, message);
  step.complete = false;
  return step;
}

}  // namespace

Result<LockPlace> place_of_lock(std::string_view kured) {
  auto call = read_kured_daemon_set(kured);
  if (!call) return std::move(call).error();
  const KuredSettings settings(*std::move(call));
  LockPlace place{settings.value("ds-namespace"), settings.value("ds-name")};
  // A pod may get its namespace from itself, which is that of its DaemonSet.
  const KuredGiven* ns = settings.given("ds-namespace");
  if (ns != nullptr && ns->source == "field metadata.namespace")
    place.ns = own_namespace(kured);
  else if (auto read = expect_read(settings, "ds-namespace"); !read)
    return std::move(read).error();
  if (auto read = expect_read(settings, "ds-name"); !read) return std::move(read).error();
  if (place.ns.empty() || place.name.empty())
    return Error(Errc::decode,
                 "--ds-namespace or --ds-name of kured is empty, so kured has no lock and reboots no node");
  return place;
}

Result<LockStep> step_to_hold(std::string_view kured, std::string_view place, WallTime now) {
  const auto lock = read_lock(kured, place);
  if (!lock) return lock.error();
  std::vector<Json> holders, expired;
  for (Json& entry : of_others(*lock)) (has_expired(entry, now) ? expired : holders).push_back(std::move(entry));
  const bool several = lock->places > 1;
  if (!holders.empty()) {
    if (several && lock->of_several) return step_beside(*lock, holders, now);
    return LockStep{What::refused,
                    fmt::format("kured's lock is held by {}: it {}", names_of(holders), what_holders_do(*lock))};
  }
  std::string held =
      fmt::format("kured begins no further node: its lock (annotation {}) is held by {}", lock->key, lock_holder);
  if (!expired.empty())
    held += fmt::format(". The time of {} was over (--lock-ttl): it may still drain or reboot, so look at it",
                        names_of(expired));
  else if (lock->of_several == several && lock->entries.size() == static_cast<std::size_t>(lock->places))
    return LockStep{What::done, held};
  if (!several) return write(*lock, own_entry(now), held);
  Json entries = Json::array();
  for (std::int64_t free = 0; free < lock->places; ++free) entries.push_back(own_entry(now));
  return write(*lock, {{"maxOwners", lock->places}, {"locks", std::move(entries)}}, held);
}

Result<LockStep> step_to_release(std::string_view kured, std::string_view place) {
  auto lock = read_lock(kured, place);
  if (!lock) return std::move(lock).error();
  const auto nodes = of_others(*lock);
  if (nodes.size() == lock->entries.size())
    return LockStep{nodes.empty() ? What::done : What::refused,
                    nodes.empty() ? "nobody holds kured's lock: there is nothing to give back"
                                  : fmt::format("kured's lock is held by {}, not by {}: it stays as it is",
                                                names_of(nodes), lock_holder)};
  const std::string free = "kured's lock is given back: kured goes on with the next node that needs a reboot";
  if (nodes.empty()) return write(*lock, nullptr, free);
  return write(*lock, {{"maxOwners", lock->places}, {"locks", Json(nodes)}}, free);
}

}  // namespace haulout::cli
