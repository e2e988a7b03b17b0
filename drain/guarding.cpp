// The part of Drain that feeds the guards (guards.hpp). It looks up the controllers of the pods before the drain
// changes anything, and lists and watches their pods on other nodes by namespace. It sends only the requests that the
// enabled guards need, and none if all guards are off.
#include <fmt/format.h>
#include <set>

#include "drain/controllers.hpp"
#include "drain/drain_impl.hpp"
#include "drain/insist.hpp"
#include "drain/reasons.hpp"
#include "drain/replicas.hpp"
#include "drain/top_controller.hpp"
#include "k8s/status.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// How long the view of a namespace may collect watch events before it processes them. Replacements take seconds to
// become Ready, so this delay does not matter, and each replacement causes about four events.
constexpr Duration namespaces_patience = std::chrono::milliseconds(40);

constexpr std::string_view what_for = "guard controllers (--max-unavailable-per-controller, --canary)";

// The API group of "apps/v1"; empty for the core group.
std::string group_of(const std::string& api_version) {
  const auto slash = api_version.find('/');
  return slash == std::string::npos ? std::string() : api_version.substr(0, slash);
}

}  // namespace

// Looks up a controller that top_controller() cannot read as an apps workload. Its Scale subresource, if it has one,
// has the number of replicas. Fails only with errors that may be transient.
Task<Controller> Drain::Impl::look_up_scale(k8s::OwnerReference owner, std::string ns, TimePoint until) {
  auto known = scalable_.find(owner.api_version);
  if (known == scalable_.end()) {
    auto found = co_await insist<std::map<std::string, std::string>>(
        fmt::format("the resources of {} could not be read", owner.api_version),
        [&](TimePoint limit) { return k8s::scalable_resources(client_, owner.api_version, limit); }, request_timeout,
        until);
    if (!found && may_heal(found.error())) co_return std::move(found).error();
    // The server answers 404, without more detail, for an API that it does not serve. Whatever replaced these pods
    // cannot do so now, so they count as pods of a controller without a Scale.
    if (!found && k8s::is_not_found(found.error()))
      co_return without_scale(owner, ns, fmt::format("the API {} is not served", owner.api_version));
    if (!found) co_return nothing_known_of(owner, ns, found.error().message());
    known = scalable_.emplace(owner.api_version, *std::move(found)).first;
  }
  const auto resource = known->second.find(owner.kind);
  if (resource == known->second.end())
    co_return without_scale(owner, ns, fmt::format("{} {} cannot be scaled", owner.api_version, owner.kind));
  const std::string plural = resource->second;
  auto scale = co_await insist<k8s::Workload>(
      fmt::format("the scale of {} {}/{} could not be read", owner.kind, ns, owner.name),
      [&](TimePoint limit) { return k8s::get_scale(client_, owner.api_version, plural, ns, owner.name, limit); },
      request_timeout, until);
  if (scale && scale->uid == owner.uid) co_return controller_of(owner, ns, *std::move(scale));
  if (scale || k8s::is_gone(scale.error())) co_return gone_controller(owner, ns);
  if (may_heal(scale.error())) co_return std::move(scale).error();
  std::string why = scale.error().message();
  if (k8s::is_forbidden(scale.error()))
    why += fmt::format("; grant verb get on resource {}/scale (API group \"{}\")", plural, group_of(owner.api_version));
  co_return nothing_known_of(owner, ns, std::move(why));
}

// Looks up the controller at the top. Sends each request at least once, and repeats it after a transient failure until
// `until`, or until `others_until` for a Scale. If the Scale still fails then, but `until` has not passed, returns a
// controller whose number of replicas is unknown. Fails with errors that may be transient, and with 403 if a
// Deployment, ReplicaSet or StatefulSet may not be read.
Task<Controller> Drain::Impl::look_up(ControllerQuestion question, TimePoint until, TimePoint others_until) {
  const std::string ns = question.ns;
  k8s::OwnerReference last = question.owner;
  auto top = co_await top_controller(question.owner, ns, [&](const k8s::OwnerReference& owner) {
    last = owner;
    return insist<k8s::Workload>(
        fmt::format("{} {}/{} could not be read", owner.kind, ns, owner.name),
        [this, owner, ns](TimePoint limit) { return k8s::get_workload(client_, owner.kind, ns, owner.name, limit); },
        request_timeout, until);
  });
  if (!top) {
    if (k8s::is_forbidden(top.error()) || may_heal(top.error())) co_return std::move(top).error();
    co_return nothing_known_of(last, ns, top.error().message());
  }
  if (top->controller) co_return *std::move(top->controller);
  auto scaled = co_await look_up_scale(top->owner, ns, std::min(until, others_until));
  if (!scaled && may_heal(scaled.error()) && now() < until)
    scaled = nothing_known_of(top->owner, ns, scaled.error().message());
  if (scaled && scaled->cannot_scale && top->below) co_return *std::move(top->below);
  co_return scaled;
}

// Looks up the controllers of the pods that policy evicts. With `anew` it reads known controllers again, because they
// may have been scaled since. Returns false if the drain has ended, because the guards need a right that is missing or
// because a controller could not be read.
asio::awaitable<bool> Drain::Impl::look_up_controllers(std::vector<k8s::Pod> pods, bool anew) {
  if (!options_.guards.any()) co_return true;
  std::set<std::string> asked;
  const TimePoint limit = now() + patience_with_others;
  for (const k8s::Pod& pod : pods) {
    if (!ControllerBook::guarded(pod)) continue;
    const bool known = controllers_.of(pod) != nullptr;
    if ((known && !anew) || asked.contains(pod.controller->uid)) continue;
    if (decide(pod, options_.policy, daemon_sets_, client_.server_now()).verdict != Verdict::evict) continue;
    const k8s::OwnerReference owner = *pod.controller;
    asked.insert(owner.uid);
    auto controller = co_await look_up({owner, pod.ns}, known ? limit : TimePoint::max(), known ? now() : limit);
    // The answer from the planning stage stays valid, and the main loop asks again.
    if (!controller && known) continue;
    if (!controller && k8s::is_forbidden(controller.error())) {
      if (options_.guards.follows_pods()) {
        k8s::ResourceAttributes right;
        right.verb = "get";
        right.group = "apps";
        right.resource = "deployments, replicasets, statefulsets";
        co_return refuse_by_rights(right, what_for);
      }
      controller = nothing_known_of(owner, pod.ns,
                                    controller.error().message() +
                                        "; grant verb get on resources deployments, "
                                        "replicasets and statefulsets (API group \"apps\")");
    }
    if (!controller)
      co_return give_up(controller.error(), fmt::format("the controller of pod {} could not be read", pod.key()));
    if (!known || controllers_.is_answer(owner.uid, *controller))
      controllers_.learned(owner.uid, *std::move(controller), now());
  }
  co_return true;
}

asio::awaitable<bool> Drain::Impl::list_controlled_pods() {
  if (!options_.guards.follows_pods() || options_.dry_run != DryRunMode::none) co_return true;
  std::set<std::string> namespaces;
  for (const auto& [uid, tracked] : pipeline_->pods())
    if (tracked.state != PodState::left && ControllerBook::guarded(tracked.pod)) namespaces.insert(tracked.pod.ns);
  for (const std::string& ns : namespaces) {
    k8s::ListOptions options;
    options.ns = ns;
    options.limit = options_.page_size;
    const std::string what = "the pods of namespace " + ns + " could not be listed";
    auto pods = co_await insist<k8s::List<k8s::Pod>>(
        what, [&](TimePoint limit) { return client_.list<k8s::Pod>(options, limit); });
    if (!pods && k8s::is_forbidden(pods.error())) {
      k8s::ResourceAttributes right;
      right.verb = "list";
      right.resource = "pods";
      right.ns = ns;
      co_return refuse_by_rights(right, what_for);
    }
    if (!pods) co_return give_up(pods.error(), what);
    std::erase_if(pods->items, [](const k8s::Pod& pod) { return !ControllerBook::guarded(pod); });
    for (const k8s::Pod& pod : pods->items) controllers_.pod_changed(pod.uid, &pod, now(), client_.server_now());
    controllers_.namespace_seen(ns);
    listed_namespaces_[ns] = *std::move(pods);
  }
  // Looks up new ReplicaSets of these controllers, each only once here. The main loop asks again after a failure.
  std::set<std::string> asked;
  for (auto question = controllers_.next_question(now()); question && asked.insert(question->owner.uid).second;
       question = controllers_.next_question(now()))
    co_await resolve_controller(*question);
  co_return true;
}

void Drain::Impl::look_at_controllers(TaskGroup& group) {
  if (!options_.guards.any()) return;
  if (!resolves_controllers_ && controllers_.next_question(now())) {
    resolves_controllers_ = true;
    group.spawn(resolve_controllers());
  }
  if (!options_.guards.follows_pods()) return;
  for (const TrackedPod* tracked : pipeline_->leaving()) {
    if (namespace_views_.contains(tracked->pod.ns) || !ControllerBook::guarded(tracked->pod)) continue;
    namespace_views_[tracked->pod.ns];
    group.spawn(follow_namespace(tracked->pod.ns));
  }
}

// Runs beside the main loop. Looks up new controllers, and reads the controllers again whose pods a guard holds.
asio::awaitable<void> Drain::Impl::resolve_controllers() {
  while (const auto question = controllers_.next_question(now())) {
    co_await resolve_controller(*question);
    controllers_news();
  }
  resolves_controllers_ = false;
  changed_->notify();
}

// Asks only once, so that an API that fails does not delay the look-ups of other controllers.
asio::awaitable<void> Drain::Impl::resolve_controller(ControllerQuestion question) {
  const std::string& owner_uid = question.owner.uid;
  auto controller = co_await look_up(question, now(), now());
  if (!controller && k8s::is_forbidden(controller.error()) && controllers_.forbidden(owner_uid))
    controller = nothing_known_of(question.owner, question.ns, controller.error().message());
  if (controller && controllers_.is_answer(owner_uid, *controller)) {
    controllers_.learned(owner_uid, *std::move(controller), now());
  } else {
    controllers_.not_answered(owner_uid, now());
  }
}

void Drain::Impl::controllers_news() {
  pipeline_->guards_changed();
  changed_->notify();
}

asio::awaitable<void> Drain::Impl::follow_namespace(std::string ns) {
  k8s::ReflectorOptions options;
  options.ns = ns;
  options.page_size = options_.page_size;
  options.gather_until = [this] { return gathered_at(namespaces_patience); };
  auto& view = namespace_views_[ns];
  view = std::make_unique<k8s::Reflector<k8s::Pod>>(
      client_, rng_, options,
      [this](const std::string& uid, const k8s::Pod* pod) {
        controllers_.pod_changed(uid, pod, now(), client_.server_now());
      },
      [this, ns] {
        if (namespace_views_[ns]->health().synced) controllers_.namespace_seen(ns);
        controllers_news();
      });
  view->keep_only([](const k8s::Pod& pod) { return ControllerBook::guarded(pod); });
  if (const auto listed = listed_namespaces_.find(ns); listed != listed_namespaces_.end()) {
    view->seed(std::move(listed->second));
    listed_namespaces_.erase(listed);
  }
  co_await view->run_for_good(std::chrono::seconds(30));
}

// Returns the UIDs of the controller's pods that wait to be evicted.
std::vector<std::string> Drain::Impl::held_of(const Controller& controller) const {
  std::vector<std::string> held;
  for (const auto& [uid, tracked] : pipeline_->pods()) {
    if (!is_held(tracked) || !ControllerBook::guarded(tracked.pod)) continue;
    const Controller* of_pod = controllers_.of(tracked.pod);
    if (of_pod && of_pod->uid == controller.uid) held.push_back(uid);
  }
  return held;
}

void Drain::Impl::diagnose_controllers(TimePoint at, std::vector<DiagnosisFact>& facts) const {
  for (const auto& found : controllers_.unschedulable(at))
    facts.push_back(
        {reason::replacement_unschedulable,
         found.controller->text(),
         fmt::format("its replacement, pod {}, cannot be scheduled: {}; until then {}; add capacity, or change the "
                     "pod's requests",
                     found.pod, found.message,
                     options_.guards.canary > Duration::zero() ? "no further pod of it is evicted"
                                                               : "it counts against --max-unavailable-per-controller"),
         {},
         {.pods = held_of(*found.controller)}});
  for (const auto& [ns, view] : namespace_views_) {
    if (!view || !view->health().error || !k8s::is_forbidden(*view->health().error)) continue;
    facts.push_back(
        {reason::right_missing,
         "pods of namespace " + ns,
         fmt::format(
             "the drain cannot see replacements: {}; grant verbs list and watch on resource pods (API group \"\")",
             view->health().error->message()),
         {}});
  }
  if (options_.guards.any()) diagnose_replicas(pipeline_->leaving(), controllers_, pipeline_->book().visible(), facts);
}

}  // namespace haulout::drain
