#include "sim/eviction_requests.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <sstream>

#include "base/duration.hpp"
#include "k8s/codec.hpp"
#include "k8s/eviction_request.hpp"
#include "sim/pod_lifecycle.hpp"

namespace haulout::sim {

namespace {

constexpr Duration beat = std::chrono::seconds(60);  // between two signs of life of a responder

std::string uid_of_target(const Json& object) {
  return text(object, "/spec/target/pod/uid");
}

bool is_true(const Json& object, const char* type) {
  return text(condition(object, type), "/status") == "True";
}

bool has_ended(const Json& eviction) {
  return terminating(eviction) || is_true(eviction, "TargetEvicted") || is_true(eviction, "Failed");
}

bool wants_eviction(const Json& request) {
  return text(request, "/spec/intent") == k8s::intent_eviction && !terminating(request);
}

std::size_t active_of(const Json& eviction) {
  const Json& responders = at(eviction, "/status/targetResponders");
  std::size_t index = 0;
  while (index < responders.size() && text(responders[index], "/state") != "Active") ++index;
  return index;
}

struct Behaviour {
  std::string kind = "silent";
  Duration time{};
};

Behaviour behaviour_of(const Json& pod, const std::string& responder) {
  const Json& responders = at(pod, "/spec/evictionResponders");
  std::istringstream all(annotation(pod, "sim.haulout.dev/responders"));
  for (std::string entry; const Json& one : responders) {
    if (!std::getline(all, entry, ',')) return {};
    if (text(one, "/name") != responder) continue;
    const auto space = entry.find(' ');
    if (space == std::string::npos) return {entry, {}};
    const auto time = parse_duration(entry.substr(space + 1));
    return {entry.substr(0, space), time ? *time : Duration::zero()};
  }
  return {};
}

Json condition_of(const char* type, bool holds, const char* reason, const std::string& message = {}) {
  return {{"type", type}, {"status", holds ? "True" : "False"}, {"reason", reason}, {"message", message}};
}

}  // namespace

EvictionRequestController::EvictionRequestController(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) {
    if (!acts()) return;
    const std::string& resource = change.key.resource;
    if (resource == "evictionrequests" || resource == "evictions")
      look_later({change.key.ns, text(*change.object, "/spec/target/pod/name"), uid_of_target(*change.object)},
                 world_.timing.controller_lag);
    else if (resource == "pods" && !at(*change.object, "/spec/evictionResponders").empty())
      look_later({change.key.ns, change.key.name, uid_of(*change.object)}, world_.timing.controller_lag);
  });
}

bool EvictionRequestController::acts() const {
  return world_.switches.eviction_requests && world_.switches.eviction_request_controller;
}

void EvictionRequestController::look_later(const Target& target, Duration delay) {
  if (!planned_.insert(target).second) return;
  world_.agenda.after(delay, [this, target] {
    planned_.erase(target);
    if (acts()) sync(target);
  });
}

std::vector<Object> EvictionRequestController::requests_for(const Target& target) const {
  std::vector<Object> requests = world_.store.list("evictionrequests", target.ns);
  std::erase_if(requests, [&](const Object& one) { return uid_of_target(*one) != target.uid; });
  return requests;
}

Object EvictionRequestController::eviction_of(const Target& target) const {
  for (Object& one : world_.store.list("evictions", target.ns))
    if (uid_of_target(*one) == target.uid && !has_ended(*one)) return std::move(one);
  return nullptr;
}

void EvictionRequestController::sync(const Target& target) {
  const std::vector<Object> requests = requests_for(target);
  const bool wanted = std::ranges::any_of(requests, [](const Object& one) { return wants_eviction(*one); });
  Object eviction = eviction_of(target);
  const Object pod = world_.store.get({"pods", target.ns, target.name});
  const bool there = pod && uid_of(*pod) == target.uid;
  if (eviction && (!there || pod_finished(*pod))) {
    const Key key{"evictions", target.ns, name_of(*eviction)};
    end(key, "TargetEvicted", there ? "PodTerminal" : "PodDeleted", "Completed");
    return copy_conditions(requests, world_.store.get(key).get());
  }
  if (!there) return reject(requests, "Target pod was not found.");
  if (at(*pod, "/spec").contains("schedulingGroup")) return reject(requests, "Target pod is part of a PodGroup.");
  if (!wanted) {
    if (!eviction) return copy_conditions(requests, nullptr);
    const Key key{"evictions", target.ns, name_of(*eviction)};
    end(key, "Failed", "CanceledDueToNoRequesters", "Canceled");
    return copy_conditions(requests, world_.store.get(key).get());
  }
  if (!eviction) {
    eviction = create(target, *pod, requests);
    activate(target, {"evictions", target.ns, name_of(*eviction)}, 0, nullptr);
  } else {
    label(eviction, requests);
    advance(target, eviction);
  }
  copy_conditions(requests, world_.store.get({"evictions", target.ns, name_of(*eviction)}).get());
}

Object EvictionRequestController::create(const Target& target, const Json& pod, const std::vector<Object>& requests) {
  struct Responder {
    std::string name;
    std::int64_t priority;
  };
  std::vector<Responder> responders;
  for (const Json& one : at(pod, "/spec/evictionResponders"))
    responders.push_back({text(one, "/name"), number(one, "/priority")});
  std::ranges::sort(responders, [](const Responder& one, const Responder& other) {
    return one.priority != other.priority ? one.priority > other.priority : one.name < other.name;
  });
  responders.push_back({std::string(k8s::imperative_evictor), 100});
  Json labels = Json::object(), owners = Json::array(), targets = Json::array(), states = Json::array();
  for (const Object& request : requests) {
    labels[text(*request, "/spec/requester")] = "requester";
    owners.push_back({{"apiVersion", "lifecycle.k8s.io/v1alpha1"},
                      {"kind", "EvictionRequest"},
                      {"name", name_of(*request)},
                      {"uid", uid_of(*request)}});
  }
  for (const Responder& one : responders) {
    labels[one.name] = "responder";
    targets.push_back({{"name", one.name}, {"priority", one.priority}, {"state", "Inactive"}});
    states.push_back({{"name", one.name}});
  }
  const Json spec = {{"target", {{"pod", {{"name", target.name}, {"uid", target.uid}}}}}};
  for (int number = 1;; ++number) {
    const std::string name = fmt::format("pod-{}-{}", number, target.name);
    const Json metadata = {{"name", name}, {"namespace", target.ns}, {"labels", labels}, {"ownerReferences", owners}};
    if (auto stored =
            world_.store.create("evictions", {{"metadata", metadata},
                                              {"spec", spec},
                                              {"status", {{"targetResponders", targets}, {"responders", states}}}}))
      return stored;
  }
}

// Names requesters that have come since the Eviction was created.
void EvictionRequestController::label(const Object& eviction, const std::vector<Object>& requests) {
  world_.store.modify({"evictions", ns_of(*eviction), name_of(*eviction)}, [&](Json& next) {
    for (const Object& request : requests) next["metadata"]["labels"][text(*request, "/spec/requester")] = "requester";
  });
}

void EvictionRequestController::activate(const Target& target, const Key& eviction, std::size_t index,
                                         const char* ended_as) {
  const Object before = world_.store.get(eviction);
  if (index >= at(*before, "/status/targetResponders").size())
    return end(eviction, "Failed", "NoFurtherResponder", ended_as);
  world_.store.modify(eviction, [&](Json& next) {
    if (ended_as != nullptr) next["status"]["targetResponders"][index - 1]["state"] = ended_as;
    next["status"]["targetResponders"][index]["state"] = "Active";
    next["status"]["responders"][index]["startTime"] = k8s::format_time(world_.wall_now());
  });
  world_.agenda.after(std::chrono::seconds(1), [this, target, eviction, index, start = world_.now()] {
    respond(target, eviction, index, start);
  });
  world_.agenda.after(heartbeat_deadline, [this, target] { look_later(target, Duration::zero()); });
}

void EvictionRequestController::advance(const Target& target, const Object& eviction) {
  const std::size_t index = active_of(*eviction);
  const Json& responders = at(*eviction, "/status/responders");
  if (index >= responders.size()) return;
  const Key key{"evictions", target.ns, name_of(*eviction)};
  if (responders[index].contains("completionTime")) return activate(target, key, index + 1, "Completed");
  const std::string last = text(responders[index], "/heartbeatTime").empty()
                               ? text(responders[index], "/startTime")
                               : text(responders[index], "/heartbeatTime");
  const auto sign = k8s::parse_time(last);
  if (!sign) return;
  const Duration left = heartbeat_deadline - Duration(world_.wall_now() - *sign);
  if (left <= Duration::zero()) return activate(target, key, index + 1, "Interrupted");
  world_.agenda.after(left, [this, target] { look_later(target, Duration::zero()); });
}

void EvictionRequestController::end(const Key& eviction, const char* type, const char* reason, const char* state) {
  world_.store.modify(eviction, [&](Json& next) {
    if (const std::size_t index = active_of(next); index < next["status"]["targetResponders"].size())
      next["status"]["targetResponders"][index]["state"] = state;
    set_condition(next, condition_of(type, true, reason), world_.wall_now());
  });
}

void EvictionRequestController::copy_conditions(const std::vector<Object>& requests, const Json* eviction) {
  for (const Object& request : requests)
    world_.store.modify({"evictionrequests", ns_of(*request), name_of(*request)}, [&](Json& next) {
      next["status"]["observedGeneration"] = number(next, "/metadata/generation", 1);
      for (const char* type : {"TargetEvicted", "Failed"}) {
        Json now = eviction == nullptr ? Json() : condition(*eviction, type);
        if (now.is_null()) now = condition_of(type, false, "AwaitingEviction");
        set_condition(next, std::move(now), world_.wall_now());
      }
    });
}

void EvictionRequestController::reject(const std::vector<Object>& requests, const std::string& message) {
  for (const Object& request : requests)
    world_.store.modify({"evictionrequests", ns_of(*request), name_of(*request)}, [&](Json& next) {
      next["status"]["observedGeneration"] = number(next, "/metadata/generation", 1);
      set_condition(next, condition_of("Failed", true, "EvictionInvalid", message), world_.wall_now());
    });
}

void EvictionRequestController::respond(const Target& target, const Key& eviction, std::size_t index, TimePoint start) {
  const Object now = world_.store.get(eviction);
  const Object pod = world_.store.get({"pods", target.ns, target.name});
  if (!now || has_ended(*now) || active_of(*now) != index || !pod || uid_of(*pod) != target.uid) return;
  const std::string responder = text(at(*now, "/status/targetResponders")[index], "/name");
  const Behaviour behaviour = responder == k8s::imperative_evictor ? Behaviour{"works"} : behaviour_of(*pod, responder);
  if (behaviour.kind == "silent") return;
  const Duration left = behaviour.kind == "works" ? Duration::max() : start + behaviour.time - world_.now();
  const bool done = left <= Duration::zero();
  if (done && behaviour.kind == "stops") return;
  if (done && behaviour.kind == "moves") delete_gracefully(world_, {"pods", target.ns, target.name}, std::nullopt);
  world_.store.modify(eviction, [&](Json& next) {
    Json& own = next["status"]["responders"][index];
    own["heartbeatTime"] = k8s::format_time(world_.wall_now());
    own["message"] = done ? "done" : "moving the pod";
    if (done) own["completionTime"] = k8s::format_time(world_.wall_now());
  });
  if (done) return;
  world_.agenda.after(std::min<Duration>(left, beat),
                      [this, target, eviction, index, start] { respond(target, eviction, index, start); });
}

}  // namespace haulout::sim
