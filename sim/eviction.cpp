#include "sim/eviction.hpp"

#include <fmt/format.h>

#include "k8s/codec.hpp"
#include "sim/budgets.hpp"
#include "sim/call.hpp"
#include "sim/pod_lifecycle.hpp"

namespace haulout::sim {

struct EvictionRequest {
  Key pod;
  std::string uid;
  std::string resource_version;
  std::optional<std::int64_t> grace;
  bool dry_run = false;
  std::string manager;
  std::vector<std::string> warnings;
  Reply reply;
  std::string body_name;  // the name and the namespace in the body
  std::string body_ns;
  // For an unhealthy pod: the resourceVersion that the server has checked. The delete fails if the pod has changed
  // since then. Empty for other pods.
  std::string pinned_version;
  std::string budget_name;

  void answer(http::Response response) const {
    for (const std::string& warning : warnings) {
      std::string quoted;
      for (const char c : warning) quoted += c == '"' ? std::string("\\\"") : std::string(1, c);
      response.headers.add("Warning", fmt::format("299 - \"{}\"", quoted));
    }
    reply(std::move(response));
  }
  void answer(const StatusBody& body) const { answer(body.response()); }
};

namespace {

// Number of tries of the real server (EvictionsRetry). If each of them ends in a conflict, the server returns the
// conflict to the caller.
constexpr int longest_tries = 20;
const ResourceInfo& pods() {
  return *find_resource("pods");
}

StatusBody budget_refusal(std::string cause, int retry_after) {
  StatusBody body;
  body.code = 429;
  body.message = "Cannot evict pod as it would violate the pod's disruption budget.";
  body.reason = "TooManyRequests";
  body.causes.push_back({"DisruptionBudget", std::move(cause), ""});
  body.retry_after = retry_after;
  return body;
}

StatusBody still_processed(std::string_view budget) {
  return budget_refusal(fmt::format("The disruption budget {} is still being processed by the server.", budget), 10);
}

StatusBody closed_budget(const Json& budget) {
  const std::string name = name_of(budget);
  const Json& allowed = condition(budget, "DisruptionAllowed");
  const std::string reason = text(allowed, "/reason");
  const std::int64_t healthy = number(budget, "/status/currentHealthy"),
                     needed = number(budget, "/status/desiredHealthy");
  std::string cause = fmt::format("The disruption budget {} does not allow evicting pods currently", name);
  if (reason == "SyncFailed")
    cause += fmt::format(" because it failed sync: {}", text(allowed, "/message"));
  else if (!reason.empty() && reason != "InsufficientPods" && reason != "SufficientPods")
    cause += fmt::format(" ({}): {}", reason, text(allowed, "/message"));
  else if (!reason.empty() && healthy <= needed)
    cause = fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", name, needed, healthy);
  return budget_refusal(std::move(cause), 0);
}

StatusBody strict_error(const std::vector<std::string>& problems) {
  std::string list;
  for (const std::string& problem : problems) list += (list.empty() ? "" : ", ") + problem;
  return bad_request(
      fmt::format("Eviction in version \"v1\" cannot be handled as a Eviction: strict decoding error: {}", list));
}

// Sets `request` from the body. Returns a refusal if the body cannot be decoded as an Eviction; nullopt otherwise.
std::optional<StatusBody> decode(const Call& call, EvictionRequest& request) {
  std::vector<std::string> problems;
  const auto parsed = parse_json(call.request.body, &problems);
  if (!parsed || !parsed->is_object())
    return bad_request(
        "the object provided is unrecognized (must be of type Eviction): couldn't get version/kind; json parse error: "
        "unexpected end of JSON input (<empty>)");
  const Json& body = *parsed;
  const std::string version = body.contains("apiVersion") ? text(body, "/apiVersion") : "policy/v1";
  const std::string kind = body.contains("kind") ? text(body, "/kind") : "Eviction";
  if (kind != "Eviction" || (version != "policy/v1" && version != "policy/v1beta1"))
    return bad_request(
        fmt::format("{} in version \"{}\" cannot be handled as a Eviction: no kind \"{}\" is registered "
                    "for version \"{}\" in scheme \"pkg/runtime/scheme.go:111\"",
                    kind, version.substr(version.find('/') + 1), kind, version));
  for (std::string& problem : unknown_eviction_fields(body)) problems.push_back(std::move(problem));
  const std::string validation = call.option("fieldValidation");
  if (validation == "Strict" && !problems.empty()) return strict_error(problems);
  if (validation != "Ignore") request.warnings = std::move(problems);

  request.body_name = name_of(body);
  request.body_ns = ns_of(body);
  request.uid = text(body, "/deleteOptions/preconditions/uid");
  request.resource_version = text(body, "/deleteOptions/preconditions/resourceVersion");
  const Json& grace = at(body, "/deleteOptions/gracePeriodSeconds");
  if (grace.is_number()) request.grace = grace.get<std::int64_t>();
  request.dry_run = !call.option("dryRun").empty() || !at(body, "/deleteOptions/dryRun").empty();
  return std::nullopt;
}

std::optional<StatusBody> name_problem(const EvictionRequest& request) {
  if (request.body_name != request.pod.name) return bad_request("name in URL does not match name in Eviction object");
  if (!request.body_ns.empty() && request.body_ns != request.pod.ns)
    return bad_request("the namespace of the provided object does not match the namespace sent on the request");
  return std::nullopt;
}

bool budget_is_ignored(const Json& pod) {
  return pod_finished(pod) || text(pod, "/status/phase") == "Pending" || terminating(pod);
}

std::optional<StatusBody> precondition_problem(const Json& pod, const std::string& name, const std::string& uid,
                                               const std::string& version) {
  if (!uid.empty() && uid != uid_of(pod)) return precondition_conflict(pods(), name, "UID", uid, uid_of(pod));
  const std::string actual = text(pod, "/metadata/resourceVersion");
  if (!version.empty() && version != actual)
    return precondition_conflict(pods(), name, "ResourceVersion", version, actual);
  return std::nullopt;
}

}  // namespace

void Evictions::handle(const Call& call, Reply reply, bool as_dry_run) {
  auto request = std::make_shared<EvictionRequest>();
  request->pod = call.key();
  request->manager = call.manager();
  request->reply = std::move(reply);
  if (auto problem = decode(call, *request)) return request->answer(*problem);
  request->dry_run |= as_dry_run;
  const Object ns = world_.store.get({"namespaces", "", call.ns});
  if (!ns) return request->answer(not_found(*find_resource("namespaces"), call.ns));
  if (terminating(*ns)) return request->answer(namespace_terminating(pods(), call.name, call.ns));
  if (auto problem = name_problem(*request)) return request->answer(*problem);
  without_budget(request, 0);
}

// Evicts a pod to which budgets do not apply (Pending, finished or terminating); passes other pods to with_budget().
void Evictions::without_budget(const Shared& request, int tries) {
  const Object pod = world_.store.get(request->pod);
  if (!pod) return request->answer(not_found(pods(), request->pod.name));
  if (!budget_is_ignored(*pod)) return with_budget(request);
  const auto problem = delete_with_condition(request, {});
  if (!problem) return request->answer(success(201));
  // If the caller gave no resourceVersion, the real server retries after any conflict.
  if (!request->resource_version.empty() || tries + 1 >= longest_tries) return request->answer(*problem);
  world_.agenda.after(world_.timing.conflict_pause, [this, request, tries] { without_budget(request, tries + 1); });
}

void Evictions::with_budget(const Shared& request) {
  const Object pod = world_.store.get(request->pod);
  const std::vector<Object> budgets = budgets_of_pod(world_.store, *pod);
  if (budgets.size() > 1) {
    StatusBody body;
    body.message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    return request->answer(body);
  }
  if (budgets.empty()) return finish(request);

  const Json& budget = *budgets.front();
  request->budget_name = name_of(budget);
  if (!pod_ready(*pod)) {
    const std::int64_t healthy = number(budget, "/status/currentHealthy"),
                       needed = number(budget, "/status/desiredHealthy");
    if (text(budget, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow" || (healthy >= needed && needed > 0)) {
      request->pinned_version = text(*pod, "/metadata/resourceVersion");
      return finish(request);
    }
  }
  decrement(request, {"poddisruptionbudgets", request->pod.ns, request->budget_name}, 0);
}

void Evictions::decrement(const Shared& request, const Key& key, int tries) {
  const Object budget = world_.store.get(key);
  if (!budget) return request->answer(not_found(*find_resource("poddisruptionbudgets"), key.name));
  if (number(*budget, "/status/observedGeneration") < number(*budget, "/metadata/generation"))
    return request->answer(still_processed(key.name));
  if (at(*budget, "/status/disruptedPods").size() > 2000) {
    StatusBody body;
    body.code = 403;
    body.reason = "Forbidden";
    body.message = fmt::format(
        "poddisruptionbudget.policy \"{}\" is forbidden: DisruptedPods map too big - too many evictions not confirmed "
        "by PDB controller",
        key.name);
    body.name = key.name;
    body.group = "policy";
    body.kind = "poddisruptionbudget";
    return request->answer(body);
  }
  if (number(*budget, "/status/disruptionsAllowed") <= 0) return request->answer(closed_budget(*budget));
  if (request->dry_run) return finish(request);
  const std::uint64_t seen = budget_writes_[key];
  world_.agenda.after(world_.timing.budget_write,
                      [this, request, key, seen, tries] { write_budget(request, key, seen, tries); });
}

void Evictions::write_budget(const Shared& request, const Key& key, std::uint64_t seen, int tries) {
  const Object budget = world_.store.get(key);
  // The write is a conflict if the budget was deleted since it was read, if another eviction has changed it, if the
  // controller has exhausted it, or if Switches::budget_writes_conflict is on.
  if (!budget || budget_writes_[key] != seen || world_.switches.budget_writes_conflict ||
      number(*budget, "/status/disruptionsAllowed") <= 0)
    return conflict(request, key, tries);
  ++budget_writes_[key];
  world_.store.modify(key, [&](Json& next) {
    Json& status = next["status"];
    status["disruptionsAllowed"] = number(next, "/status/disruptionsAllowed") - 1;
    status["disruptedPods"][request->pod.name] = k8s::format_time(world_.wall_now());
    if (status["disruptionsAllowed"] == 0)
      set_condition(next,
                    {{"type", "DisruptionAllowed"},
                     {"status", "False"},
                     {"reason", "InsufficientPods"},
                     {"message", ""},
                     {"observedGeneration", number(next, "/metadata/generation")}},
                    world_.wall_now());
  });
  finish(request);
}

void Evictions::conflict(const Shared& request, const Key& key, int tries) {
  if (tries + 1 >= longest_tries)
    return request->answer(modified_conflict(*find_resource("poddisruptionbudgets"), key.name));
  world_.agenda.after(world_.timing.conflict_pause,
                      [this, request, key, tries] { decrement(request, key, tries + 1); });
}

void Evictions::finish(const Shared& request) {
  const auto problem = delete_with_condition(request, request->pinned_version);
  if (!problem) return request->answer(success(201));
  if (problem->code == 409 && !request->pinned_version.empty() && request->resource_version.empty())
    return request->answer(still_processed(request->budget_name));
  request->answer(*problem);
}

std::optional<StatusBody> Evictions::delete_with_condition(const Shared& request, const std::string& pinned_version) {
  const Object pod = world_.store.get(request->pod);
  if (!pod) return not_found(pods(), request->pod.name);
  const std::string& version = request->resource_version.empty() ? pinned_version : request->resource_version;
  if (auto problem = precondition_problem(*pod, request->pod.name, request->uid, version)) return problem;
  if (request->dry_run) return std::nullopt;
  mark_disruption_target(world_, request->pod, request->manager);
  delete_gracefully(world_, request->pod, request->grace);
  return std::nullopt;
}

}  // namespace haulout::sim
