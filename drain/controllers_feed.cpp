#include "drain/controllers_feed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "drain/controller_book.hpp"
#include "drain/controller_guard.hpp"
#include "drain/reasons.hpp"

namespace haulout::drain {
namespace asio = boost::asio;

namespace {

// How long the view of a namespace may collect watch events before it processes them together. Each replacement causes
// about four events. The delay does not matter, because replacements take seconds to become Ready. After each batch the
// guards are asked again about each pod that they hold. So the more pods wait, the larger the batches are, and the
// share of the processor that this takes does not grow with the number of pods. While no guard holds a pod, the events
// are processed together with those of the node's pods.
Duration namespaces_patience(const Pipeline& pipeline) {
  using std::chrono::microseconds, std::chrono::milliseconds;
  if (!pipeline.any_held_by_guard()) return Pipeline::patience_before;
  const std::size_t waiting = pipeline.leaving().size();
  return std::clamp<Duration>(microseconds(250) * waiting, milliseconds(40), milliseconds(250));
}

constexpr std::string_view what_for = "read what --max-unavailable-per-controller, --canary and --surge need";

// Returns the API group of an API version: "apps" for "apps/v1", empty for the core group.
std::string group_of(const std::string& api_version) {
  const auto slash = api_version.find('/');
  return slash == std::string::npos ? std::string() : api_version.substr(0, slash);
}

}  // namespace

// Looks up a controller that top_controller() cannot read as an apps workload. Its Scale subresource, if it has one,
// has the number of replicas. Fails only with errors that may be transient.
Task<Controller> ControllersFeed::find_scale(k8s::OwnerReference owner, std::string ns, TimePoint until) {
  auto known = scalable_.find(owner.api_version);
  if (known == scalable_.end()) {
    auto found = co_await session_.insist<std::map<std::string, std::string>>(
        fmt::format("the resources of {} could not be read", owner.api_version),
        [&](TimePoint limit) { return k8s::scalable_resources(session_.client(), owner.api_version, limit); },
        request_timeout, until);
    if (!found && k8s::may_heal(found.error())) co_return std::move(found).error();
    // The server answers 404, without more detail, for an API that it does not serve. Perhaps nothing replaces the pods
    // of such a controller, so it counts as one without a Scale: --max-unavailable-per-controller ignores its pods.
    if (!found && k8s::is_not_found(found.error()))
      co_return without_scale(owner, ns, fmt::format("the API server does not serve {}", owner.api_version));
    if (!found) co_return nothing_known_of(owner, ns, found.error().message());
    known = scalable_.emplace(owner.api_version, *std::move(found)).first;
  }
  const auto resource = known->second.find(owner.kind);
  if (resource == known->second.end())
    co_return without_scale(owner, ns, fmt::format("{} {} has no scale subresource", owner.api_version, owner.kind));
  const std::string plural = resource->second;
  auto scale = co_await session_.insist<k8s::Workload>(
      fmt::format("the scale of {} {}/{} could not be read", owner.kind, ns, owner.name),
      [&](TimePoint limit) {
        return k8s::get_scale(session_.client(), owner.api_version, plural, ns, owner.name, limit);
      },
      request_timeout, until);
  if (scale && scale->uid == owner.uid) co_return controller_of(owner, ns, *std::move(scale));
  if (scale || k8s::is_gone(scale.error())) co_return gone_controller(owner, ns);
  if (k8s::may_heal(scale.error())) co_return std::move(scale).error();
  std::string why = scale.error().message();
  if (k8s::is_forbidden(scale.error()))
    why += fmt::format("; grant verb get on resource {}/scale (API group \"{}\")", plural, group_of(owner.api_version));
  co_return nothing_known_of(owner, ns, std::move(why));
}

// Looks up the topmost controller, or the ReplicaSet below it if the topmost one has no Scale. Sends each request at
// least once, and repeats it after a transient failure until `until`, or until `others_until` for a Scale. If the Scale
// still cannot be read then, but `until` has not passed, returns a controller whose number of replicas is unknown.
// Fails with errors that may be transient, and with 403 if a Deployment, ReplicaSet or StatefulSet may not be read.
Task<Controller> ControllersFeed::find(ControllerQuestion question, TimePoint until, TimePoint others_until) {
  const std::string ns = question.ns;
  k8s::OwnerReference last = question.owner;
  auto top = co_await top_controller(question.owner, ns, [&](const k8s::OwnerReference& owner) {
    last = owner;
    return session_.insist<k8s::Workload>(
        fmt::format("{} {}/{} could not be read", owner.kind, ns, owner.name),
        [this, owner, ns](TimePoint limit) {
          return k8s::get_workload(session_.client(), owner.kind, ns, owner.name, limit);
        },
        request_timeout, until);
  });
  if (!top) {
    if (k8s::is_forbidden(top.error()) || k8s::may_heal(top.error())) co_return std::move(top).error();
    co_return nothing_known_of(last, ns, top.error().message());
  }
  if (top->controller && top->controller->gone && question.above)
    co_return co_await find({*question.above, ns, {}}, until, others_until);
  if (top->controller) co_return *std::move(top->controller);
  auto scaled = co_await find_scale(top->owner, ns, std::min(until, others_until));
  if (!scaled && k8s::may_heal(scaled.error()) && session_.now() < until)
    scaled = nothing_known_of(top->owner, ns, scaled.error().message());
  if (scaled && scaled->cannot_scale && top->below) co_return *std::move(top->below);
  co_return scaled;
}

asio::awaitable<bool> ControllersFeed::look_up(std::vector<k8s::Pod> pods, bool anew) {
  const bool guards = guard_.guards().any();
  std::set<std::string> asked;
  const TimePoint limit = session_.now() + patience_with_others;
  for (const k8s::Pod& pod : pods) {
    if (!is_guarded(pod) || !(guards || pod.surge_mark)) continue;
    const bool known = book_.of(pod) != nullptr;
    const ControllerQuestion question = question_about(pod);
    if ((known && !anew) || asked.contains(question.key())) continue;
    if (!ControllerGuard::judges(by_policy_(pod))) continue;
    const k8s::OwnerReference owner = *pod.controller;
    asked.insert(question.key());
    auto controller =
        co_await find(question, known || !guards ? limit : TimePoint::max(), known ? session_.now() : limit);
    // The earlier answer stays valid. The main loop reads the controller again if pods are parked because of it.
    if (!controller && (known || !guards)) continue;
    if (!controller && k8s::is_forbidden(controller.error())) {
      if (guard_.guards().follows_pods()) {
        k8s::ResourceAttributes right;
        right.verb = "get";
        right.group = "apps";
        right.resource = "deployments, replicasets, statefulsets";
        co_return session_.ending().lacks_right(session_.node_name(), right, what_for);
      }
      controller = nothing_known_of(owner, pod.ns,
                                    controller.error().message() +
                                        "; grant verb get on resources deployments, "
                                        "replicasets and statefulsets (API group \"apps\")");
    }
    if (!controller)
      co_return session_.ending().give_up(controller.error(),
                                          fmt::format("the controller of pod {} could not be read", pod.key()));
    if (!known || book_.is_answer(owner.uid, *controller))
      book_.learned(owner.uid, *std::move(controller), session_.now());
  }
  co_return true;
}

asio::awaitable<bool> ControllersFeed::list_pods() {
  if (session_.options().dry_run != DryRunMode::none) co_return true;
  const bool needed = guard_.guards().follows_pods();
  std::set<std::string> namespaces;
  for (const auto& [uid, tracked] : pipeline_.pods())
    if (tracked.state != PodState::left && follows(tracked.pod)) namespaces.insert(tracked.pod.ns);
  for (const std::string& ns : namespaces) {
    k8s::ListOptions options;
    options.ns = ns;
    options.limit = session_.options().page_size;
    const std::string what = "the pods of namespace " + ns + " could not be listed";
    auto pods = co_await session_.insist<k8s::List<k8s::Replica>>(
        what, [&](TimePoint limit) { return session_.client().list<k8s::Replica>(options, limit); },
        needed ? std::nullopt : std::optional(request_timeout), needed ? TimePoint::max() : session_.now());
    if (!pods && !needed) continue;
    if (!pods && k8s::is_forbidden(pods.error())) {
      k8s::ResourceAttributes right;
      right.verb = "list";
      right.resource = "pods";
      right.ns = ns;
      co_return session_.ending().lacks_right(session_.node_name(), right, what_for);
    }
    if (!pods) co_return session_.ending().give_up(pods.error(), what);
    std::erase_if(pods->items, [](const k8s::Replica& pod) { return !is_guarded(pod); });
    for (const k8s::Replica& pod : pods->items)
      book_.pod_changed(pod.uid, &pod, session_.now(), session_.client().server_now());
    book_.namespace_seen(ns);
    listed_[ns] = *std::move(pods);
  }
  // Looks up the ReplicaSets that the lists have shown and that may belong to these controllers, each only once. The
  // main loop repeats look-ups that failed (look()).
  std::set<std::string> asked;
  for (auto question = book_.next_question(session_.now()); question && asked.insert(question->key()).second;
       question = book_.next_question(session_.now()))
    co_await resolve(*question);
  co_return true;
}

// Without a guard that counts pods, only the controllers of pods are followed that an earlier drain has surged.
bool ControllersFeed::follows(const k8s::Pod& pod) const {
  return is_guarded(pod) && (guard_.guards().follows_pods() || pod.surge_mark);
}

void ControllersFeed::look(TaskGroup& group) {
  if (!resolver_.runs() && book_.next_question(session_.now())) resolver_.start(group, resolve_all());
  for (const TrackedPod* tracked : pipeline_.leaving()) {
    if (!follows(tracked->pod) || views_.contains(tracked->pod.ns)) continue;
    views_[tracked->pod.ns];
    group.spawn(follow(tracked->pod.ns));
  }
}

// Sends the look-ups that are due (ControllerBook::next_question()), one after the other. Runs concurrently with the
// main loop.
asio::awaitable<void> ControllersFeed::resolve_all() {
  while (const auto question = book_.next_question(session_.now())) {
    co_await resolve(*question);
    tell_pipeline();
  }
  session_.changed().notify();
}

// Sends each request only once, so that an API that fails does not delay the look-ups of other controllers.
asio::awaitable<void> ControllersFeed::resolve(ControllerQuestion question) {
  const std::string& owner_uid = question.owner.uid;
  auto controller = co_await find(question, session_.now(), session_.now());
  if (!controller && k8s::is_forbidden(controller.error()) && book_.questions().forbidden(question.key()))
    controller = nothing_known_of(question.owner, question.ns, controller.error().message());
  if (controller && book_.is_answer(owner_uid, *controller)) {
    book_.learned(owner_uid, *std::move(controller), session_.now());
    learned_ = true;
  } else {
    book_.not_answered(question, session_.now());
  }
}

void ControllersFeed::tell_pipeline() {
  pipeline_.guards_changed(std::exchange(learned_, false));
  session_.changed().notify();
}

asio::awaitable<void> ControllersFeed::follow(std::string ns) {
  k8s::ReflectorOptions options;
  options.ns = ns;
  options.page_size = session_.options().page_size;
  options.gather_until = [this] { return gathered_at(session_.now(), namespaces_patience(pipeline_)); };
  auto& view = views_[ns];
  view = std::make_unique<k8s::Reflector<k8s::Replica>>(
      session_.client(), session_.rng(), options,
      [this](const std::string& uid, const k8s::Replica* pod) {
        book_.pod_changed(uid, pod, session_.now(), session_.client().server_now());
      },
      [this, ns] {
        if (views_[ns]->health().synced) book_.namespace_seen(ns);
        tell_pipeline();
      });
  view->keep_only([](const k8s::Replica& pod) { return is_guarded(pod); });
  if (const auto listed = listed_.find(ns); listed != listed_.end()) {
    view->seed(std::move(listed->second));
    listed_.erase(listed);
  }
  co_await view->run_for_good(std::chrono::seconds(30));
}

void ControllersFeed::forget_pods() {
  listed_.clear();
  book_.forget_pods();
}

// Lists the pods again because, after etcd was restored from a backup, a watch may have lost the event that a
// replacement is Ready.
void ControllersFeed::look_at_held(TaskGroup& group) {
  if (held_.due(!views_.empty() && pipeline_.any_held_by_guard(), session_.now())) group.spawn(doubt());
}

asio::awaitable<void> ControllersFeed::doubt() {
  for (const std::string& ns : pipeline_.namespaces_held_by_guards()) {
    const auto view = views_.find(ns);
    if (view != views_.end() && view->second && view->second->health().synced)
      static_cast<void>(co_await view->second->look_again());
  }
}

TimePoint ControllersFeed::next_wake(TimePoint at) const {
  return std::min({book_.next_due(at), guard_.next_due(at), held_.next()});
}

// Returns the UIDs of the controller's pods that wait to be evicted.
std::vector<std::string> ControllersFeed::held_of(const Controller& controller) const {
  std::vector<std::string> held;
  for (const auto& [uid, tracked] : pipeline_.pods()) {
    if (!is_held(tracked) || !is_guarded(tracked.pod)) continue;
    const Controller* of_pod = book_.of(tracked.pod);
    if (of_pod && of_pod->uid == controller.uid) held.push_back(uid);
  }
  return held;
}

void ControllersFeed::diagnose(std::vector<DiagnosisFact>& facts) const {
  for (const auto& found : guard_.unschedulable(session_.now()))
    facts.push_back(
        {reason::replacement_unschedulable,
         found.controller->text(),
         fmt::format("its replacement, pod {}, cannot be scheduled: {}; until it is scheduled, {}; add capacity, or "
                     "change what the pod requires",
                     found.pod, found.message,
                     guard_.guards().canary > Duration::zero() ? "no further pod of the controller is evicted"
                     : guard_.guards().max_unavailable         ? "it counts against --max-unavailable-per-controller"
                                                               : "it replaces no pod"),
         {},
         {.pods = held_of(*found.controller)}});
  for (const auto& [ns, view] : views_) {
    if (!view || !view->health().error || !k8s::is_forbidden(*view->health().error)) continue;
    facts.push_back(
        {reason::right_missing,
         "pods of namespace " + ns,
         fmt::format(
             "the drain cannot see replacements: {}; grant verbs list and watch on resource pods (API group \"\")",
             view->health().error->message()),
         {}});
  }
  if (guard_.guards().any()) diagnose_replicas(pipeline_.leaving(), guard_, pipeline_.book().complete(), facts);
}

}  // namespace haulout::drain
