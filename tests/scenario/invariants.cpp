#include "tests/scenario/invariants.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "k8s/codec.hpp"

namespace haulout::scenario {
namespace {

using namespace std::chrono_literals;

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string what(const sim::Call& call) {
  std::string result = call.verb + " " + (call.info ? std::string(call.info->resource) : call.path);
  if (!call.subresource.empty()) result += "/" + call.subresource;
  if (!call.name.empty()) result += " " + (call.ns.empty() ? call.name : call.ns + "/" + call.name);
  return result;
}

bool is_eviction(const sim::Call& call) {
  return call.verb == "create" && call.info && call.info->resource == "pods" && call.subresource == "eviction";
}

bool is_about_volumes(const sim::Call& call) {
  return call.info &&
         (call.info->resource == "volumeattachments" || call.info->resource.starts_with("persistentvolume"));
}

// Discovery of the kinds in an API group: /apis/GROUP/VERSION.
bool is_discovery(const sim::Call& call) {
  return call.verb == "list" && call.path.starts_with("/apis/") &&
         std::count(call.path.begin(), call.path.end(), '/') == 3;
}

bool is_removal(const sim::Call& call) {
  return call.verb == "delete" && call.info && call.info->resource == "pods" && call.subresource.empty();
}

// `deletes` is true if the options replace evictions with deletions.
bool is_allowed(const sim::Call& call, const std::string& node, bool deletes) {
  if (call.verb == "create" && call.path.ends_with("/selfsubjectaccessreviews")) return true;
  if (!call.info) return is_discovery(call);
  const auto& resource = call.info->resource;
  if (call.verb == "get" || call.verb == "list" || call.verb == "watch") return call.subresource.empty();
  if (call.verb == "patch" && resource == "pods") return call.subresource.empty();
  if (call.verb == "patch") return resource == "nodes" && call.name == node && call.subresource.empty();
  return deletes ? is_removal(call) : is_eviction(call);
}

bool has_uid(const sim::Json& object) {
  return sim::text(object, "/metadata/name").empty() || !sim::text(object, "/metadata/uid").empty();
}

bool is_refused_by_budget(const http::Response& answer) {
  return answer.status == 429 && answer.body.find("DisruptionBudget") != std::string::npos;
}

// Returns false for a proxy's page, a truncated answer, and an object without kind or UID.
bool is_success(const http::Response& answer) {
  if (answer.status < 200 || answer.status >= 300) return false;
  const sim::Json body = sim::Json::parse(answer.body, nullptr, false);
  if (sim::text(body, "/kind").empty() || !has_uid(body)) return false;
  const sim::Json& items = sim::at(body, "/items");
  return sim::text(body, "/status") != "Failure" && std::all_of(items.begin(), items.end(), has_uid);
}

}  // namespace

Invariants::Invariants(sim::TestCluster& cluster, Clock& clock, Circumstances given)
    : cluster_(cluster), clock_(clock), given_(std::move(given)) {
  cluster_.on_change([this](const sim::Change& change) { see(change); });
  cluster_.server().on_answer([this](const sim::AuditEntry& entry) { see_answer(entry); });
}

void Invariants::began() {
  began_ = clock_.now();
  note("the drain begins");
  if (!given_.webhook_ns.empty()) touched_namespaces_.insert(given_.webhook_ns);
  const auto all = budgets();
  pages_ = (pods_.size() + all.size()) / std::max(1u, given_.options.page_size) + 2;
  for (auto& [uid, pod] : pods_) {
    pod.here_at_first = !pod.gone;
    pod.ready_at_first = pod.ready_since && !pod.terminating;
    const auto concerns = [&pod](const k8s::PodDisruptionBudget& budget) { return budget.selects(pod.pod); };
    const bool protected_now = on_our_node(pod) && verdict(pod) == drain::Verdict::park;
    const bool in_turn = given_.options.volume_turns != drain::VolumeWait::off && !pod.pod.claims.empty();
    const bool budgeted = !given_.options.delete_instead_of_evict && std::any_of(all.begin(), all.end(), concerns);
    const bool asks =
        given_.options.eviction_requests != drain::EvictionRequests::off && !pod.pod.eviction_responders.empty();
    const bool waits = asks || protected_now || in_turn || waits_for_others(pod) || (stage_of(pod) > 0 && !is_own(pod));
    if (waits) held_otherwise_.insert(uid);
    if (waits || budgeted) hindered_.insert(uid);
  }
}

std::vector<k8s::PodDisruptionBudget> Invariants::budgets() const {
  std::vector<k8s::PodDisruptionBudget> all;
  for (const sim::Json& object : cluster_.all("poddisruptionbudgets"))
    if (auto budget = k8s::decode<k8s::PodDisruptionBudget>(object.dump())) all.push_back(*std::move(budget));
  return all;
}

void Invariants::violated(std::string what) {
  note("VIOLATED " + what);
  violations_.push_back(std::move(what));
}

void Invariants::note(const std::string& what) {
  trace_.push_back(fmt::format("{:10.4f} {}", seconds(clock_.now() - TimePoint(1h)), what));
}

void Invariants::see_answer(const sim::AuditEntry& entry) {
  note("server: " + entry.text());
  if (!entry.applied || entry.resource.ends_with("selfsubjectaccessreviews")) return;
  wrote_ = true;
  if (entry.resource == "nodes") see_node_written();
  if (entry.resource == "nodes" && !given_.human_cordon && !cordon_claimed_) cordoned_by_drain_ = true;
  if (entry.resource != "pods" || entry.verb == "patch") return;
  const auto found = pods_.find(entry.uid);
  if (found == pods_.end() || found->second.key != entry.ns + "/" + entry.name || !was_ours(found->second))
    return violated(
        fmt::format("P2: an eviction of {}/{} took effect that named no pod of our node", entry.ns, entry.name));
  if (!found->second.terminating && !found->second.gone)
    violated(fmt::format("P2: the eviction of {} was accepted, but that instance stays", found->second.key));
  found->second.evicted_by_us = true;
  check_replaced(found->second);
}

Task<http::Response> Invariants::round_trip(http::Request request, TimePoint deadline) {
  const sim::Call call = sim::parse_call(request);
  before(call);
  Instance* const pod = evicted_by(call);
  // The destructor counts down even if the drain is cancelled during the request.
  struct InFlight {
    Instance* pod;
    unsigned life;
    ~InFlight() {
      if (pod && pod->life == life) --pod->in_flight;
    }
  } in_flight{pod, pod ? pod->life : 0};
  if (pod) before_eviction(call, *pod);
  const TimePoint sent = clock_.now();
  auto answer = co_await inner_->round_trip(std::move(request), deadline);
  if (!answer) note("  lost: " + what(call) + ": " + answer.error().message());
  const bool success = answer && is_success(*answer);
  if (!success && !is_eviction(call) && !is_removal(call)) ++failures_;
  if (pod && answer && answer->status == 429 && !is_refused_by_budget(*answer)) ++throttled_;
  if (answer && answer->status == 403 && is_about_volumes(call)) ++volume_refusals_;
  if (success && call.verb == "list" && call.info && call.info->resource == "pods" && call.ns.empty())
    last_list_ = sent;
  if (success && call.info && call.info->resource == "nodes") {
    node_told_ = call.verb == "patch" ? clock_.now() : sent;
    if (call.verb == "get") told_of_node(sim::Json::parse(answer->body));
  }
  if (success && call.verb == "get" && call.info && call.info->resource == "namespaces")
    told_of_namespace(call.name, sim::Json::parse(answer->body));
  if (success && call.verb == "patch" && !is_pod_patch(call) && !cordon_told_) cordon_told_ = clock_.now();
  if (pod) after_eviction(*pod, answer ? &*answer : nullptr, success);
  co_return std::move(answer);
}

void Invariants::told_of_node(const sim::Json& node) {
  if (node_uid_.empty()) node_uid_ = sim::text(node, "/metadata/uid");
  cordon_told_.reset();
  if (sim::flag(node, "/spec/unschedulable")) cordon_told_ = clock_.now();
}

Task<std::unique_ptr<http::BodyStream>> Invariants::open(http::Request request, TimePoint deadline) {
  const sim::Call call = sim::parse_call(request);
  before(call);
  auto stream = co_await inner_->open(std::move(request), deadline);
  if (!stream) note("  lost: " + what(call) + ": " + stream.error().message());
  co_return std::move(stream);
}

void Invariants::before(const sim::Call& call) {
  // Further pages of a list do not count, because their number depends on the page size.
  // Patches of pods have a limit of their own.
  if (call.option("continue").empty() && !is_pod_patch(call)) ++requests_;
  if (is_pod_patch(call)) check_pod_patch(call);
  if (writes_request(call)) check_request(call);
  if (call.verb == "get" && call.info) ++reads_[what(call)];
  check_rate();
  if (!writes_request(call) && !is_allowed(call, given_.node, given_.options.delete_instead_of_evict))
    violated("P1: the drain asked for " + what(call));
  if (call.verb == "get" && call.info && call.info->resource == "pods")
    violated("P10: a pod is read by itself, although the watch tells: " + what(call));
  if (call.verb == "list" && call.option("resourceVersion") == "0")
    violated("P4: the drain trusts a list that may be old: " + what(call));
}

void Invariants::check_rate() {
  const TimePoint now = clock_.now();
  lately_.push_back(now);
  while (lately_.front() <= now - 1s) lately_.pop_front();
  std::size_t ours = 0;
  std::set<std::string> namespaces;
  for (const auto& [uid, pod] : pods_) {
    if (!on_our_node(pod)) continue;
    ++ours;
    namespaces.insert(pod.key.substr(0, pod.key.find('/')));
  }
  // Making the plan of the evictions and opening its views takes 12 requests, and the views of volumes take two. With
  // EvictionRequests there are two more views. Each namespace is read for --surge, and its pods are listed.
  const std::size_t views = given_.options.eviction_requests != drain::EvictionRequests::off ? 18 : 14;
  const std::size_t most = views + 4 * (ours + pages_) + 2 * namespaces.size();
  if (lately_.size() == most + 1) violated(fmt::format("P10: {} requests within a second", lately_.size()));
}

// Returns true if the drain cannot know yet what a restored backup has changed about the pod: it learns that from its
// next list.
bool Invariants::is_restored_unheard(const Instance& pod) const {
  return pod.life > 0 && last_list_ <= pod.restored_at;
}

// Returns true if the pod is on our node, as far as the drain can know: in a restored backup it may not have been
// scheduled yet.
bool Invariants::was_ours(const Instance& pod) const {
  return on_our_node(pod) || is_restored_unheard(pod);
}

Invariants::Instance* Invariants::evicted_by(const sim::Call& call) {
  if (!is_eviction(call) && !is_removal(call)) return nullptr;
  const sim::Json body = sim::Json::parse(call.request.body, nullptr, false);
  const sim::Json& options = is_removal(call) ? body : sim::at(body, "/deleteOptions");
  const sim::Json& grace = sim::at(options, "/gracePeriodSeconds");
  if (grace.is_number() ? grace != given_.options.grace_seconds.value_or(-1) : given_.options.grace_seconds.has_value())
    violated("P1: another grace period than was asked for: " + what(call));
  const std::string uid = sim::text(options, "/preconditions/uid");
  if (uid.empty()) {
    violated("P2: an eviction without a UID: " + what(call));
    return nullptr;
  }
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second.key != call.ns + "/" + call.name || !was_ours(found->second)) {
    violated("P2: an eviction that names no pod of our node: " + what(call));
    return nullptr;
  }
  ++found->second.in_flight;
  return &found->second;
}

// Returns true if the drain must know the change by now. It opens its watches when it cordons, and knows a change
// within `news_takes` from then on. Before that, it knows only what its preflight has listed.
bool Invariants::heard_of(TimePoint change) const {
  const TimePoint now = clock_.now();
  return now - std::max(change, cordon_claimed_.value_or(now)) > news_takes;
}

// True if the pod terminates with a grace period longer than the requested one, no matter who started it.
bool Invariants::is_longer_than_asked(const Instance& pod) const {
  const auto asked = given_.options.grace_seconds;
  return asked && pod.terminating && pod.pod.deletion_grace_seconds.value_or(INT64_MAX) > *asked;
}

void Invariants::before_eviction(const sim::Call& call, Instance& pod) {
  const TimePoint now = clock_.now();
  note_ready_before(pod);
  // The pod is already terminating, so the rules about order, places, budgets and volume turns do not apply. Just after
  // the cordon, the drain may not have learned yet that its grace period is over, or that a restored backup has undone
  // its deletion.
  const bool lately_longer = given_.options.grace_seconds && pod.terminating && !heard_of(*pod.terminating);
  const bool undone = given_.options.grace_seconds && is_restored_unheard(pod);
  if ((is_longer_than_asked(pod) || lately_longer || undone) && !pod.accepted) {
    pod.shortened = true;
    pod.last_sent = now;
    pod.last_sent_as = ++evictions_sent_;
    return;
  }
  if (!cordon_claimed_) violated("P3: evicted before the cordon was acknowledged: " + what(call));
  // The drain may not have learned yet that the pod has finished.
  const bool finished_unheard = pod.finished && !(given_.sound_wire && heard_of(*pod.finished));
  if (!pod.terminating && !pod.gone && pod.life == 0 && !finished_unheard && verdict(pod) != drain::Verdict::evict)
    violated(fmt::format("P2: policy says {}: {}", drain::to_string(verdict(pod)), what(call)));
  check_rule(pod);
  check_gangs(pod);
  if (pod.last_sent && now - *pod.last_sent < 10ms) violated("P10: evicted again without a pause: " + what(call));
  if (given_.sound_wire && pod.terminating && heard_of(*pod.terminating))
    violated("P2: evicted again although it is terminating: " + what(call));
  if (given_.sound_wire && pod.gone && heard_of(*pod.gone))
    violated("P2: evicted although it has vanished: " + what(call));
  if (given_.sound_wire && !unschedulable_since_ && now - schedulable_since_ > news_takes)
    violated("P3: evicted although the cordon was lost: " + what(call));
  if (given_.sound_wire && node_gone_ && now - *node_gone_ > news_takes)
    violated("P3: evicted although the Node has gone: " + what(call));
  // Pods that are already deleted are exempt. The server has forgotten their objects, and the drain may not have
  // received the watch event yet.
  if (!pod.first_sent && given_.sound_wire && !pod.gone) {
    check_order(pod);
    check_gang_alone(pod);
    check_controller(pod);
  }
  if (!pod.first_sent) pod.first_sent = now;
  pod.last_sent = now;
  pod.last_sent_as = ++evictions_sent_;
  if (!pod.signal) check_places();
  if (given_.sound_wire && !given_.options.delete_instead_of_evict) check_budget_lanes(pod);
  if (given_.sound_wire && pod.signal) check_signal(pod);
  const bool turns = given_.options.volume_turns != drain::VolumeWait::off;
  if (turns && given_.sound_wire && given_.sound_kubelets) check_turns(pod);
}

// A signal (a request for a pod whose budget is exhausted) takes no place. If it is accepted because its budget allowed
// a disruption in the meantime, the drain may have one terminating pod too many.
bool Invariants::takes_place(const Instance& pod) const {
  if (pod.gone || pod.signal || pod.shortened) return false;
  if (pod.in_flight > 0) return true;
  const bool shows = pod.terminating.value_or(clock_.now()) < pod.accepted_until;
  return pod.accepted && shows && clock_.now() < pod.place_until;
}

// Counts places by the state of the cluster. The drain itself must count at least as many.
void Invariants::check_places() {
  if (given_.options.max_concurrent == 0) return;
  std::size_t taken = 0;
  std::string who;
  for (const auto& [uid, pod] : pods_) {
    if (!takes_place(pod)) continue;
    ++taken;
    who += " " + pod.key;
  }
  if (taken > given_.options.max_concurrent)
    violated(fmt::format("places: {} taken of {}:{}", taken, given_.options.max_concurrent, who));
}

// At most one eviction request at a time is in flight for each budget.
void Invariants::check_budget_lanes(const Instance& pod) {
  if (pod.gone) return;
  // Signals, which are requests for pods whose budgets are exhausted, are exempt. They have a limit of their own: one
  // at a time.
  for (const k8s::PodDisruptionBudget& budget : budgets()) {
    if (!budget.selects(pod.pod)) continue;
    const auto under_way = std::count_if(pods_.begin(), pods_.end(), [&](const auto& entry) {
      const Instance& other = entry.second;
      return other.in_flight > 0 && !other.shortened && other.signal == pod.signal && budget.selects(other.pod);
    });
    if (under_way > 1) violated(fmt::format("budgets: {} requests under way for {}", under_way, budget.key()));
  }
}

void Invariants::after_eviction(Instance& evicted, const http::Response* answer, bool success) {
  evicted.refused_by_budget = answer && is_refused_by_budget(*answer);
  evicted.shortening_refused = evicted.shortened && answer && !success;
  if (evicted.signal && given_.sound_wire) after_signal(evicted, answer);
  if (!success) return;
  evicted.accepted = true;
  evicted.accepted_until = clock_.now() + drain::Pipeline::acceptance_limit;
  check_places();
}

void Invariants::check_claim(const drain::Event& event) {
  const Instance& pod = pods_[event.pod->uid];
  if (event.type == drain::EventType::evicted && !pod.accepted && !pod.terminating && !pod.gone)
    violated("P4: says evicted, but nobody has accepted that: " + event.pod->key());
  if (event.type == drain::EventType::throttled && pod.refused_by_budget)
    violated("P9: all pods wait, for a budget of one of them: " + event.pod->key());
}

// A pod may be left as pinned only if its controller has brought it back more than once.
void Invariants::check_pinned(const drain::Event& event) {
  const std::string& uid = event.pod->uid;
  // The drain evicts the pod after all because the node was schedulable in the meantime.
  if (event.type == drain::EventType::eviction_sent || event.type == drain::EventType::signal_sent)
    left_pinned_.erase(uid);
  if (event.type != drain::EventType::left || event.pod->reason != "PodPinned") return;
  left_pinned_.insert(uid);
  const auto came = std::count_if(pods_.begin(), pods_.end(), [&](const auto& entry) {
    const Instance& other = entry.second;
    return on_our_node(other) && other.bound > began_ && other.controller == pods_[uid].controller;
  });
  if (given_.options.policy.pinned != drain::Treatment::skip || came < 2)
    violated("P3: left as pinned, though it has come back " + std::to_string(came) + " times: " + event.pod->key());
}

void Invariants::on_event(const drain::Event& event) {
  std::string line = fmt::format("drain: {}", drain::to_string(event.type));
  if (event.pod) line += fmt::format(" {} {}", event.pod->key(), event.pod->reason);
  if (event.pod && event.type == drain::EventType::parked) line += ": " + event.pod->message;
  if (event.volume) line += fmt::format(" {} {}", event.volume->volume, event.volume->message);
  if (event.diagnosis) line += fmt::format(" {} {}", event.diagnosis->code, event.diagnosis->subject);
  if (!event.message.empty()) line += ": " + event.message;
  note(line);
  if (event.pod) check_claim(event);
  if (event.pod && event.type == drain::EventType::eviction_sent) pods_[event.pod->uid].signal = false;
  if (event.pod && event.type == drain::EventType::signal_sent) pods_[event.pod->uid].signal = true;
  if (event.pod) check_pinned(event);
  if (event.pod && event.type == drain::EventType::left) told_left_.insert(event.pod->uid);
  if (event.diagnosis && event.type == drain::EventType::diagnosis_raised && event.diagnosis->code == "ReplicasUnknown")
    unknown_controllers_.insert(event.diagnosis->subject);
  if (event.diagnosis && event.type == drain::EventType::diagnosis_raised && event.diagnosis->code == "GangBroken")
    gangs_told_.insert(event.diagnosis->subject);
  if (event.type != drain::EventType::cordoned) return;
  cordon_claimed_ = clock_.now();
  if (!cordon_told_ && !unschedulable_since_) violated("P3: says cordoned, but nobody has told it so");
}

}  // namespace haulout::scenario
