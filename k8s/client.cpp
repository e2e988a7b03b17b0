#include "k8s/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "k8s/codec_sizes.hpp"
#include "k8s/list_budget.hpp"
#include "k8s/selected.hpp"
#include "k8s/status.hpp"

namespace haulout::k8s {
namespace {

// client-go restarts once and then lists unpaged. A second restart costs little and keeps the answers small.
constexpr int restarts_before_unpaged = 2;
// A page that was too long is requested again with its size divided by this factor, repeatedly if needed.
constexpr std::uint32_t part_of_a_page = 8;
// After pages of the requested size were too long, later lists start with smaller pages, but not with smaller ones than
// this. Otherwise a single large object would turn each later list into thousands of requests.
constexpr std::uint32_t smallest_first_page = 50;

// The page may be longer than an answer may be, or have too many values. Or something between client and server does
// not speak HTTP. A request for a smaller page shows which it is.
bool may_be_too_long(const Error& error) {
  return error.code() == Errc::protocol;
}

std::string_view plural_of(Resource resource) {
  switch (resource) {
    case Resource::pods: return "pods";
    case Resource::nodes: return "Nodes";
    case Resource::pod_disruption_budgets: return "PodDisruptionBudgets";
    case Resource::volume_attachments: return "VolumeAttachments";
    case Resource::leases: return "Leases";
    case Resource::config_maps: return "ConfigMaps";
  }
  return "";
}

std::string whole_of(Resource resource, const std::string& ns) {
  return fmt::format("{}{}", plural_of(resource), ns.empty() ? "" : " of namespace " + ns);
}

// For an error message: the holder that has the most Leases. Empty if there are no Leases.
std::string who_holds_most(const std::vector<Lease>& leases) {
  std::map<std::string_view, std::size_t> count;
  for (const Lease& lease : leases) ++count[lease.holder];
  const auto most = std::max_element(count.begin(), count.end(),
                                     [](const auto& one, const auto& other) { return one.second < other.second; });
  return most == count.end() ? std::string() : fmt::format("; {} of them are held by {}", most->second, most->first);
}
template <class T>
std::string who_holds_most(const std::vector<T>&) {
  return {};
}

template <class T>
Error too_much(Resource resource, const std::string& ns, const std::string& limit, const std::vector<T>& items,
               std::string_view page) {
  const std::string longest = longest_object(page);
  return Error(
      Errc::decode,
      fmt::format("the {} exceed the limit of {}{}{}; delete what is not needed", whole_of(resource, ns), limit,
                  longest.empty() ? "" : ", the longest of the last page is " + longest, who_holds_most(items)));
}

template <class T>
Result<List<T>> decode_list(std::string_view body);
template <>
Result<List<Pod>> decode_list<Pod>(std::string_view body) {
  return decode_pod_list(body);
}
template <>
Result<List<Node>> decode_list<Node>(std::string_view body) {
  return decode_node_list(body);
}
template <>
Result<List<PodDisruptionBudget>> decode_list<PodDisruptionBudget>(std::string_view body) {
  return decode_pdb_list(body);
}
template <>
Result<List<VolumeAttachment>> decode_list<VolumeAttachment>(std::string_view body) {
  return decode_volume_attachment_list(body);
}
template <>
Result<List<Lease>> decode_list<Lease>(std::string_view body) {
  return decode_lease_list(body);
}
template <>
Result<List<ConfigMap>> decode_list<ConfigMap>(std::string_view body) {
  return decode_config_map_list(body);
}

}  // namespace

Task<http::Response> Client::send(http::Request request, TimePoint deadline) {
  CO_TRY(auto response, co_await transport_.round_trip(std::move(request), deadline));
  auto failure = failure_of(response, clock_.wall_now());
  if (failure) co_return std::move(*failure);
  has_succeeded_ = true;
  // A body that is no JSON object may come from a proxy, whose clock may be different.
  if (response.body.starts_with('{')) see_date(response.headers);
  co_return response;
}

// Date is truncated to whole seconds. So it is most precise in the first answer whose Date differs from the previous
// one.
void Client::see_date(const http::Headers& headers) {
  const auto text = headers.find("Date");
  if (!text || *text == last_date_) return;
  last_date_ = *text;
  const auto date = http::date(headers);
  if (!date) return;
  // The answer was also written some time before it arrived. So a difference below two seconds counts as none.
  const WallTime ours = clock_.wall_now();
  const bool alike = std::chrono::abs(*date - ours) < std::chrono::seconds(2);
  server_clock_.emplace(clock_.now(), alike ? ours : WallTime(*date));
}

WallTime Client::server_now() const {
  if (!server_clock_) return clock_.wall_now();
  const auto& [at, shown] = *server_clock_;
  return shown + std::chrono::duration_cast<WallTime::duration>(clock_.now() - at);
}

Task<Node> Client::get_node(std::string name, TimePoint deadline) {
  CO_TRY(const auto response, co_await send(k8s::get_node(name), deadline));
  co_return only_named(name, decode_node(response.body));
}

Task<Node> Client::patch_node(std::string name, std::string merge_patch, DryRun dry_run, TimePoint deadline) {
  auto request = k8s::patch_node(name, std::move(merge_patch), {dry_run, options_.validation});
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return only_named(name, decode_node(response.body));
}

Task<List<Node>> Client::list_nodes(std::string label_selector, TimePoint deadline) {
  ListOptions options;
  options.label_selector = label_selector;
  options.limit = options_.page_size;
  auto nodes = co_await list<Node>(Resource::nodes, std::move(options), deadline);
  if (nodes) CO_CHECK(check_labels(label_selector, nodes->items));
  co_return nodes;
}

Task<List<Pod>> Client::list_pods_on(std::string node, TimePoint deadline) {
  ListOptions options;
  options.field_selector = "spec.nodeName=" + node;
  options.limit = options_.page_size;
  co_return co_await list<Pod>(Resource::pods, std::move(options), deadline);
}

Task<List<PodDisruptionBudget>> Client::list_pdbs(TimePoint deadline) {
  ListOptions options;
  options.limit = options_.page_size;
  co_return co_await list<PodDisruptionBudget>(Resource::pod_disruption_budgets, std::move(options), deadline);
}

Task<List<VolumeAttachment>> Client::list_volume_attachments(std::function<bool(const VolumeAttachment&)> wanted,
                                                             TimePoint deadline) {
  ListOptions options;
  options.limit = options_.page_size;
  co_return co_await list<VolumeAttachment>(Resource::volume_attachments, std::move(options), deadline, longest_page,
                                            std::move(wanted));
}

Task<NodeVolumes> Client::get_node_volumes(std::string node, TimePoint deadline) {
  CO_TRY(const auto response, co_await send(k8s::get_node(node), deadline));
  co_return decode_node_volumes(response.body);
}

Task<PersistentVolume> Client::get_persistent_volume(std::string name, TimePoint deadline) {
  CO_TRY(auto request, k8s::get_persistent_volume(name));
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_persistent_volume(response.body);
}

Task<PersistentVolumeClaim> Client::get_persistent_volume_claim(std::string ns, std::string name, TimePoint deadline) {
  CO_TRY(auto request, k8s::get_persistent_volume_claim(ns, name));
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_persistent_volume_claim(response.body);
}

Task<Namespace> Client::get_namespace(std::string name, TimePoint deadline) {
  CO_TRY(auto request, k8s::get_namespace(name));
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_namespace(response.body);
}

Task<Service> Client::get_service(std::string ns, std::string name, TimePoint deadline) {
  CO_TRY(auto request, k8s::get_service(ns, name));
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_service(response.body);
}

Task<> Client::evict(std::string ns, std::string pod, DeleteOptions options, TimePoint deadline) {
  options.write.validation = options_.validation;
  CO_TRY(const auto response, co_await send(k8s::evict(ns, pod, options), deadline));
  co_return decode_write_answer(response.body);
}

Task<> Client::delete_pod(std::string ns, std::string pod, DeleteOptions options, TimePoint deadline) {
  CO_TRY(const auto response, co_await send(k8s::delete_pod(ns, pod, options), deadline));
  co_return decode_write_answer(response.body);
}

Task<DaemonSet> Client::get_daemon_set(std::string ns, std::string name, TimePoint deadline) {
  CO_TRY(auto request, k8s::get_daemon_set(ns, name));
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_daemon_set(response.body);
}

Task<Workload> Client::get_workload(std::string kind, std::string ns, std::string name, TimePoint deadline) {
  const std::string resource = kind == "Deployment"   ? "deployments"
                               : kind == "ReplicaSet" ? "replicasets"
                                                      : "statefulsets";
  CO_TRY(auto request, k8s::get_workload(resource, ns, name));
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_workload(response.body, kind);
}

Task<Workload> Client::get_scale(std::string api_version, std::string resource, std::string ns, std::string name,
                                 TimePoint deadline) {
  CO_TRY(auto request, k8s::get_scale(api_version, resource, ns, name));
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_workload(response.body, "Scale");
}

Task<std::map<std::string, std::string>> Client::scalable_resources(std::string api_version, TimePoint deadline) {
  CO_TRY(auto request, discover(api_version));
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_scalable(response.body);
}

Task<AccessReview> Client::review_access(ResourceAttributes attributes, TimePoint deadline) {
  CO_TRY(const auto response, co_await send(create_access_review(attributes), deadline));
  co_return decode_access_review(response.body);
}

Task<Self> Client::review_self(TimePoint deadline) {
  CO_TRY(const auto response, co_await send(create_self_review(), deadline));
  co_return decode_self_review(response.body);
}

Task<Node> Client::patch_node_status(std::string name, std::string strategic_merge_patch, TimePoint deadline) {
  auto request = k8s::patch_node_status(name, std::move(strategic_merge_patch), {DryRun::none, options_.validation});
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return only_named(name, decode_node(response.body));
}

Task<List<Lease>> Client::list_leases(std::string ns, std::string label_selector, TimePoint deadline) {
  ListOptions options;
  options.ns = std::move(ns);
  options.label_selector = std::move(label_selector);
  options.limit = options_.page_size;
  co_return co_await list<Lease>(Resource::leases, std::move(options), deadline);
}

Task<Lease> Client::get_lease(std::string ns, std::string name, TimePoint deadline) {
  CO_TRY(const auto response, co_await send(k8s::get_lease(ns, name), deadline));
  co_return decode_lease(response.body);
}

Task<Lease> Client::create_lease(Lease lease, TimePoint deadline) {
  auto request = k8s::create_lease(lease, {DryRun::none, options_.validation});
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_lease(response.body);
}

Task<Lease> Client::patch_lease(std::string ns, std::string name, std::string merge_patch, TimePoint deadline) {
  auto request = k8s::patch_lease(ns, name, std::move(merge_patch), {DryRun::none, options_.validation});
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_lease(response.body);
}

Task<> Client::delete_lease(std::string ns, std::string name, std::string uid, std::string resource_version,
                            TimePoint deadline) {
  const DeleteOptions options{std::move(uid), std::nullopt, {}, std::move(resource_version)};
  CO_TRY(const auto response, co_await send(k8s::delete_lease(ns, name, options), deadline));
  co_return decode_write_answer(response.body, "Lease");
}

Task<ConfigMap> Client::get_config_map(std::string ns, std::string name, TimePoint deadline) {
  CO_TRY(const auto response, co_await send(k8s::get_config_map(ns, name), deadline));
  co_return decode_config_map(response.body);
}

Task<ConfigMap> Client::create_config_map(ConfigMap config_map, TimePoint deadline) {
  auto request = k8s::create_config_map(config_map, {DryRun::none, options_.validation});
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_config_map(response.body);
}

Task<ConfigMap> Client::patch_config_map(std::string ns, std::string name, std::string merge_patch,
                                         TimePoint deadline) {
  auto request = k8s::patch_config_map(ns, name, std::move(merge_patch), {DryRun::none, options_.validation});
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_config_map(response.body);
}

Task<> Client::create_event(NodeEvent event, TimePoint deadline) {
  auto request = k8s::create_event(event, {DryRun::none, options_.validation});
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_write_answer(response.body, "Event");
}

Task<> Client::repeat_event(std::string ns, std::string name, std::int32_t count, WallTime last_observed,
                            TimePoint deadline) {
  auto request = k8s::repeat_event(ns, name, count, last_observed, {DryRun::none, options_.validation});
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_write_answer(response.body, "Event");
}

template <class T>
Task<List<T>> Client::list(Resource resource, ListOptions options, TimePoint deadline, Duration page_timeout,
                           std::function<bool(const T&)> wanted) {
  for (int restarts = 0;; ++restarts) {
    auto all = co_await list_pages<T>(resource, options, deadline, page_timeout, wanted);
    const bool lost_its_place = !all && is_expired(all.error()) && options.limit != 0;
    if (!lost_its_place) co_return all;
    if (restarts == restarts_before_unpaged) options.limit = 0;
  }
}

template <class T>
Task<List<T>> Client::list_pages(Resource resource, ListOptions options, TimePoint deadline, Duration page_timeout,
                                 std::function<bool(const T&)> wanted) {
  List<T> all;
  ListSize size;
  if (options_.page_size != 0) options.limit = std::min(options.limit, options_.page_size);
  const std::uint32_t usual = options.limit;
  for (;;) {
    const auto page_deadline = std::min(deadline, saturating_add(clock_.now(), page_timeout));
    auto response = co_await send(k8s::list(resource, options), page_deadline);
    auto page = response ? decode_list<T>(response->body) : Result<List<T>>(response.error());
    if (!page && may_be_too_long(page.error()) && options.limit > 1) {
      options.limit = std::max<std::uint32_t>(1, options.limit / part_of_a_page);
      options_.page_size = std::min(options_.page_size, std::max(options.limit, smallest_first_page));
      continue;
    }
    if (!page && may_be_too_long(page.error()) && options.limit == 1)
      co_return std::move(page).error().with_context("reading the " + whole_of(resource, options.ns) + " one by one");
    if (!page) co_return std::move(page).error();
    size.read += response->body.size();
    for (const T& object : page->items) CO_CHECK(check_selected(options.field_selector, object));
    if (wanted) std::erase_if(page->items, [&](const T& object) { return !wanted(object); });
    for (const T& object : page->items) {
      size.kept += text_in(object);
      size.memory += memory_of(object);
    }
    // All pages have the same resourceVersion. If they had not, a watch from that of the first page, the oldest, would
    // still miss nothing.
    if (all.meta.resource_version.empty()) all.meta.resource_version = std::move(page->meta.resource_version);
    std::move(page->items.begin(), page->items.end(), std::back_inserter(all.items));
    size.items = all.items.size();
    if (const auto limit = excess_of(resource, size))
      co_return too_much(resource, options.ns, *limit, all.items, response->body);
    if (page->meta.continue_token.empty()) co_return all;
    if (page->meta.continue_token == options.continue_token) {
      co_return Error(Errc::decode, "the list never ends: the server sent the same continue token twice");
    }
    options.continue_token = std::move(page->meta.continue_token);
    options.limit = std::min(usual, options.limit * 2);
  }
}

template Task<List<Pod>> Client::list(Resource, ListOptions, TimePoint, Duration, std::function<bool(const Pod&)>);
template Task<List<Node>> Client::list(Resource, ListOptions, TimePoint, Duration, std::function<bool(const Node&)>);
template Task<List<PodDisruptionBudget>> Client::list(Resource, ListOptions, TimePoint, Duration,
                                                      std::function<bool(const PodDisruptionBudget&)>);
template Task<List<VolumeAttachment>> Client::list(Resource, ListOptions, TimePoint, Duration,
                                                   std::function<bool(const VolumeAttachment&)>);
template Task<List<Lease>> Client::list(Resource, ListOptions, TimePoint, Duration, std::function<bool(const Lease&)>);
template Task<List<ConfigMap>> Client::list(Resource, ListOptions, TimePoint, Duration,
                                            std::function<bool(const ConfigMap&)>);

}  // namespace haulout::k8s
