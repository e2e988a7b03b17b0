#include "k8s/client.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "k8s/label_selector.hpp"
#include "k8s/status.hpp"

namespace haulout::k8s {
namespace {

// Number of restarts of a list whose continue token has expired, before it is made unpaged. client-go restarts once. A
// second restart costs little and keeps the responses small.
constexpr int restarts_before_unpaged = 2;
// A page that was too long is requested again with its size divided by this factor, repeatedly if needed.
constexpr std::uint32_t part_of_a_page = 8;
// The size of the first page after a list without pages was too long.
constexpr std::uint32_t instead_of_all = 500;
// After pages of the requested size were too long, later lists start with smaller pages, but not with smaller ones than
// this. Otherwise a single large object would turn each later list into thousands of requests.
constexpr std::uint32_t smallest_first_page = 50;

// Returns whether a smaller page may succeed. Errc::protocol means that the page has too many bytes or values, or that
// something between client and server does not speak HTTP. A request for a smaller page shows which it is.
bool may_be_too_long(const Error& error) {
  return error.code() == Errc::protocol;
}

std::string whole_of(const Api& api, const std::string& ns) {
  return fmt::format("{}{}", api.many, ns.empty() ? "" : " of namespace " + ns);
}

constexpr std::string_view by_name = "metadata.name=";
constexpr std::string_view by_node = "spec.nodeName=";

Error about_others(std::string_view kind, const std::string& name, std::string_view field, const std::string& value,
                   std::string_view wanted) {
  return Error(Errc::decode, fmt::format("the server's answer contains other objects: {} {} has {}{}, requested was "
                                         "{}; does a proxy in between change requests or ignore field selectors?",
                                         kind, name, field, value.empty() ? "(none)" : value, wanted));
}

// Fails with Errc::decode if a Node does not match the selector. Does not check a selector that cannot be parsed, nor a
// Node of which some labels may not have been kept, because such a Node must not make the whole list fail.
Result<> check_labels(std::string_view label_selector, const std::vector<Node>& nodes) {
  const auto selector = parse_label_selector(label_selector);
  if (!selector) return {};
  for (const Node& node : nodes)
    if (!selector->matches(node.labels) && !labels_may_be_cut(node))
      return Error(Errc::decode, fmt::format("the server's answer contains other objects: Node {} lacks the requested "
                                             "labels ({}); does a proxy in between ignore label selectors?",
                                             node.name, label_selector));
  return {};
}

}  // namespace

Result<> check_selected(std::string_view field_selector, std::string_view kind, const std::string& name,
                        const std::string* node_name) {
  if (field_selector.starts_with(by_name)) {
    const auto wanted = field_selector.substr(by_name.size());
    if (name != wanted) return about_others(kind, name, by_name, name, wanted);
  }
  if (node_name != nullptr && field_selector.starts_with(by_node)) {
    const auto wanted = field_selector.substr(by_node.size());
    if (*node_name != wanted) return about_others(kind, name, by_node, *node_name, wanted);
  }
  return {};
}

Result<Node> only_named(std::string_view name, Result<Node> answer) {
  if (!answer || answer->name == name) return answer;
  return about_others(Kind<Node>::name, answer->name, by_name, answer->name, name);
}

Error too_much(const Api& api, const std::string& ns, const std::string& limit, const std::string& part,
               std::string_view page) {
  const std::string longest = longest_object(page);
  return Error(Errc::decode,
               fmt::format("there are more {} than Haulout reads (at most {}){}{}; delete those that are not needed",
                           whole_of(api, ns), limit,
                           longest.empty() ? "" : "; the largest object of the last page is " + longest, part));
}

Task<http::Response> Client::send(http::Request request, TimePoint deadline) {
  CO_TRY(auto response, co_await transport_.round_trip(std::move(request), deadline));
  auto failure = failure_of(response, clock_.wall_now());
  if (failure) co_return std::move(*failure);
  has_succeeded_ = true;
  // The Date of a response whose body is not a JSON object is not used: it may come from a proxy, whose clock may be
  // different.
  if (response.body.starts_with('{')) server_time_.learn(response.headers);
  co_return response;
}

// Uses only a Date that differs from the previous one. Date is truncated to whole seconds, so the first response with a
// new Date is the most precise.
void ServerTime::learn(const http::Headers& headers) {
  const auto text = headers.find("Date");
  if (!text || *text == last_date_) return;
  last_date_ = *text;
  const auto date = http::date(headers);
  if (!date) return;
  // Date is truncated to whole seconds, and the response was written some time before it arrived. So a difference of
  // less than two seconds between the server's clock and the local clock counts as none.
  const WallTime ours = clock_.wall_now();
  const bool alike = std::chrono::abs(*date - ours) < std::chrono::seconds(2);
  seen_.emplace(clock_.now(), alike ? ours : WallTime(*date));
}

WallTime ServerTime::now() const {
  if (!seen_) return clock_.wall_now();
  const auto& [at, shown] = *seen_;
  return shown + std::chrono::duration_cast<WallTime::duration>(clock_.now() - at);
}

Task<List<Node>> Client::list_nodes(std::string label_selector, TimePoint deadline) {
  ListOptions options;
  options.label_selector = label_selector;
  options.limit = usual_page;
  auto nodes = co_await list<Node>(std::move(options), deadline);
  if (nodes) CO_CHECK(check_labels(label_selector, nodes->items));
  co_return nodes;
}

Task<List<Pod>> Client::list_pods_on(std::string node, TimePoint deadline) {
  ListOptions options;
  options.field_selector = "spec.nodeName=" + node;
  options.limit = usual_page;
  co_return co_await list<Pod>(std::move(options), deadline);
}

Task<List<VolumeAttachment>> list_attachments_to(Client& client, std::string node, TimePoint deadline) {
  co_return co_await client.list<VolumeAttachment>(
      {.limit = usual_page}, deadline, longest_page,
      [&node](const VolumeAttachment& attachment) { return attachment.node_name == node; });
}

Task<Node> Client::patch_node_status(std::string name, std::string strategic_merge_patch, TimePoint deadline) {
  auto request = k8s::patch_node_status(name, std::move(strategic_merge_patch), {DryRun::none, options_.validation});
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return only_named(name, decode<Node>(response.body));
}

Task<> Client::evict(std::string ns, std::string pod, DeleteOptions options, TimePoint deadline) {
  options.write.validation = options_.validation;
  CO_TRY(const auto response, co_await send(k8s::evict(ns, pod, options), deadline));
  co_return decode_write_answer(response.body);
}

Task<Workload> get_workload(Client& client, std::string kind, std::string ns, std::string name, TimePoint deadline) {
  const std::string resource = kind == "Deployment"   ? "deployments"
                               : kind == "ReplicaSet" ? "replicasets"
                                                      : "statefulsets";
  CO_TRY(auto request, k8s::get_workload(resource, ns, name));
  CO_TRY(const auto response, co_await client.send(std::move(request), deadline));
  co_return decode_workload(response.body, kind);
}

Task<Workload> get_scale(Client& client, std::string api_version, std::string resource, std::string ns,
                         std::string name, TimePoint deadline) {
  CO_TRY(auto request, k8s::get_scale(api_version, resource, ns, name));
  CO_TRY(const auto response, co_await client.send(std::move(request), deadline));
  co_return decode_workload(response.body, "Scale");
}

Task<std::map<std::string, std::string>> scalable_resources(Client& client, std::string api_version,
                                                            TimePoint deadline) {
  CO_TRY(auto request, discover(api_version));
  CO_TRY(const auto response, co_await client.send(std::move(request), deadline));
  co_return decode_scalable(response.body);
}

Task<AccessReview> review_access(Client& client, ResourceAttributes attributes, TimePoint deadline) {
  CO_TRY(const auto response, co_await client.send(create_access_review(attributes), deadline));
  co_return decode_access_review(response.body);
}

Task<Self> Client::review_self(TimePoint deadline) {
  CO_TRY(const auto response, co_await send(create_self_review(), deadline));
  co_return decode_self_review(response.body);
}

Task<> Client::create_event(NodeEvent event, TimePoint deadline) {
  auto request = k8s::create(event, {DryRun::none, options_.validation});
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_write_answer(response.body, "Event");
}

Task<> Client::repeat_event(std::string ns, std::string name, std::int32_t count, WallTime last_observed,
                            TimePoint deadline) {
  auto request = k8s::repeat_event(ns, name, count, last_observed, {DryRun::none, options_.validation});
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode_write_answer(response.body, "Event");
}

Task<> Client::list_pages(Api api, ListOptions options, TimePoint deadline, Duration page_timeout, Pages pages) {
  if (options.limit == usual_page) options.limit = options_.page_size;
  for (int restarts = 0;; ++restarts) {
    pages.begin();
    auto all = co_await read_pages(api, options, deadline, page_timeout, pages);
    const bool lost_its_place = !all && is_expired(all.error()) && options.limit != 0;
    if (!lost_its_place) co_return all;
    if (restarts == restarts_before_unpaged) options.limit = 0;
  }
}

Task<> Client::read_pages(const Api& api, ListOptions options, TimePoint deadline, Duration page_timeout,
                          Pages& pages) {
  if (options_.page_size != 0) options.limit = std::min(options.limit, options_.page_size);
  const std::uint32_t usual = options.limit == 0 ? instead_of_all : options.limit;
  for (;;) {
    const auto page_deadline = std::min(deadline, saturating_add(clock_.now(), page_timeout));
    auto response = co_await send(k8s::list(api, options), page_deadline);
    auto token = response ? pages.take(response->body) : Result<std::string>(response.error());
    if (!token && may_be_too_long(token.error()) && options.limit != 1) {
      options.limit = options.limit == 0 ? usual : std::max<std::uint32_t>(1, options.limit / part_of_a_page);
      options_.page_size = std::min(options_.page_size, std::max(options.limit, smallest_first_page));
      continue;
    }
    if (!token && may_be_too_long(token.error()) && options.limit == 1)
      co_return std::move(token).error().with_context("reading the " + whole_of(api, options.ns) + " one by one");
    if (!token) co_return std::move(token).error();
    if (token->empty()) co_return Result<>();
    if (*token == options.continue_token)
      co_return Error(Errc::decode, "the list never ends: the server sent the same continue token twice");
    options.continue_token = *std::move(token);
    options.limit = std::min(usual, options.limit * 2);
  }
}

}  // namespace haulout::k8s
