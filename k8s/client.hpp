// Typed calls of the Kubernetes API. Each call builds a request, sends it, checks the status of the response and
// decodes its body. It makes one attempt without retries, with two exceptions for lists: a list restarts if its
// continue token has expired (twice, then unpaged), as the API requires, and a page that is too long is requested again
// in smaller pages. Fails with the errors of Transport, with Errc::status if the server responds with a failure, and
// with Errc::decode if the response cannot be decoded, is about another Node than requested, or is a list with objects
// that its selector does not select (as far as check_selected() and list_nodes() check that). For kinds other than
// Node, the name of a single object is not checked. Cancellable; the client must outlive its calls. Borrows the
// transport and the clock; owns nothing.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "http/transport.hpp"
#include "k8s/codec.hpp"
#include "k8s/list_budget.hpp"
#include "k8s/requests.hpp"

namespace haulout::k8s {

// Time limit for one page of a list from a busy server. The API server itself ends a request after 60 s.
inline constexpr Duration longest_page = std::chrono::seconds(60);

struct ClientOptions {
  FieldValidation validation = FieldValidation::warn;
  std::uint32_t page_size = 500;  // default of kubectl drain's --chunk-size; 0 disables paging
  // Approximate limit for the memory of the objects that are kept from one collection, in bytes. 0 sets no such limit.
  // The limits of the kind (ListBudget in kind.hpp) apply in any case.
  std::size_t most_memory = 0;
};

// Estimates the API server's current time from the Date headers of its responses.
class ServerTime {
 public:
  explicit ServerTime(Clock& clock) : clock_(clock) {}
  // Uses the Date header of a successful response.
  void learn(const http::Headers& headers);
  // Returns the server's current time; before the first response the local time.
  WallTime now() const;

 private:
  Clock& clock_;
  std::string last_date_;
  // Local steady time at which a response arrived, and the server's wall time at that moment.
  std::optional<std::pair<TimePoint, WallTime>> seen_;
};

// Checks that a response is about the requested objects: a proxy that ignores selectors must not make pods of other
// nodes look like pods of this node. Fails with Errc::decode if the selector does not select the object. Checks only a
// selector that is exactly `metadata.name=…`, or `spec.nodeName=…` of a Pod. Pure.
Result<> check_selected(std::string_view field_selector, std::string_view kind, const std::string& name,
                        const std::string* node_name);
template <class T>
Result<> check_selected(std::string_view field_selector, const T& object) {
  const std::string* node_name = nullptr;
  if constexpr (requires { object.node_name; }) node_name = &object.node_name;
  return check_selected(field_selector, Kind<T>::name, object.name, node_name);
}

class Client {
 public:
  Client(http::Transport& transport, Clock& clock, ClientOptions options = {})
      : transport_(transport), clock_(clock), options_(options), server_time_(clock) {}
  // A client that knows what `other` knows of the server, and sends its requests through `transport`. Borrows it.
  Client(const Client& other, http::Transport& transport)
      : transport_(transport),
        clock_(other.clock_),
        options_(other.options_),
        has_succeeded_(other.has_succeeded_),
        server_time_(other.server_time_) {}

  // Gets an object of any kind that has a Kind<T>. Fails with Errc::decode if the name is empty and the kind's names
  // come from other objects (Names::of_objects).
  template <class T>
  Task<T> get(std::string ns, std::string name, TimePoint deadline);
  // Gets an object of a kind without namespace.
  template <class T>
  Task<T> get(std::string name, TimePoint deadline) {
    static_assert(Kind<T>::api.scope == Scope::cluster);
    return get<T>({}, std::move(name), deadline);
  }
  // Lists all pages of a collection, in the most recent state. `options.limit` is the page size: `usual_page` stands
  // for the page size of ClientOptions, 0 disables paging. `page_timeout` limits each page; the number of pages is not
  // limited. If `wanted` is set, only objects for which it returns true are kept, page by page. If the kind has an
  // outline, `wanted` must not rely on more than that.
  template <class T>
  Task<List<T>> list(ListOptions options, TimePoint deadline, Duration page_timeout = longest_page,
                     std::function<bool(const T&)> wanted = {});
  // What list_pages() calls. `begin`: before the first page, and each time the list starts anew, because its continue
  // token has expired. `take`: with the body of each page, from which it may move; returns the continue token.
  struct Pages {
    std::function<void()> begin;
    std::function<Result<std::string>(std::string& page)> take;
  };
  // As list(), for callers that decode the pages themselves. A page that is too long (longest_answer), or for which
  // `take` fails with Errc::protocol, is requested again as smaller pages, also if paging is disabled. Fails with any
  // other error of `take`. What `api` refers to must exist until this ends.
  Task<> list_pages(Api api, ListOptions options, TimePoint deadline, Duration page_timeout, Pages pages);
  // Creates the object and returns it as stored. If the name is in use, fails with an error for which
  // is_already_exists() is true. An earlier attempt of this client whose response was lost may have created the object.
  template <class T>
  Task<T> create(T object, TimePoint deadline);
  template <class T>
  Task<T> patch(std::string ns, std::string name, std::string merge_patch, TimePoint deadline,
                DryRun dry_run = DryRun::none);
  // Deletes the object with this UID. A Lease is deleted only if it is still in the state that was read; otherwise this
  // fails with an error for which is_conflict() is true.
  template <class T>
  Task<> remove(std::string ns, std::string name, DeleteOptions options, TimePoint deadline);

  Task<Node> get_node(std::string name, TimePoint deadline) { return get<Node>(std::move(name), deadline); }
  // Lists the Nodes that the selector matches. Fails with Errc::decode if the response has a Node without these labels,
  // unless some labels of that Node may not have been kept (labels_may_be_cut()).
  Task<List<Node>> list_nodes(std::string label_selector, TimePoint deadline);
  Task<Node> patch_node(std::string name, std::string merge_patch, DryRun dry_run, TimePoint deadline) {
    return patch<Node>({}, std::move(name), std::move(merge_patch), deadline, dry_run);
  }
  Task<Node> patch_node_status(std::string name, std::string strategic_merge_patch, TimePoint deadline);
  // Lists the pods of all namespaces on a node. The name must not be empty: with an empty name the selector would match
  // every unscheduled pod.
  Task<List<Pod>> list_pods_on(std::string node, TimePoint deadline);
  Task<> evict(std::string ns, std::string pod, DeleteOptions options, TimePoint deadline);
  // Returns the identity under which the server sees this client. Needs no permission.
  Task<Self> review_self(TimePoint deadline);
  Task<> create_event(NodeEvent event, TimePoint deadline);
  // Records that an Event happened again. Fails with an error for which is_not_found() is true if the Event has expired
  // (one hour after its last write).
  Task<> repeat_event(std::string ns, std::string name, std::int32_t count, WallTime last_observed, TimePoint deadline);

  // Sends a request and returns the response. Fails with Errc::status if the server responds with a failure.
  Task<http::Response> send(http::Request request, TimePoint deadline);

  // Returns the current time by the API server's clock: the Date of a successful response plus the time that has
  // elapsed since it arrived. So neither a jump of the local clock nor a proxy's error page changes it. At best
  // accurate to a second. Before the first successful response it is the local time.
  WallTime server_now() const { return server_time_.now(); }

  // Returns true if a request of this client has succeeded: the server is reachable and accepts the credentials.
  bool has_succeeded() const { return has_succeeded_; }

  http::Transport& transport() { return transport_; }
  Clock& clock() { return clock_; }
  // Returns a description of the limit that a collection exceeds, or nullopt if it exceeds none.
  std::optional<std::string> excess_of(const ListBudget& budget, const ListSize& size) const {
    return excess(budget, size, options_.most_memory);
  }

 private:
  Task<> read_pages(const Api& api, ListOptions options, TimePoint deadline, Duration page_timeout, Pages& pages);

  http::Transport& transport_;
  Clock& clock_;
  ClientOptions options_;
  bool has_succeeded_ = false;
  ServerTime server_time_;
};

// Returns whether the user of this client has the right. Borrows the client, as all functions below.
Task<AccessReview> review_access(Client& client, ResourceAttributes attributes, TimePoint deadline);

// Gets a Deployment, ReplicaSet or StatefulSet (apps/v1), depending on `kind`.
Task<Workload> get_workload(Client& client, std::string kind, std::string ns, std::string name, TimePoint deadline);
Task<Workload> get_scale(Client& client, std::string api_version, std::string resource, std::string ns,
                         std::string name, TimePoint deadline);
// Returns the resources of a group and version that have a scale subresource: kind → plural name.
Task<std::map<std::string, std::string>> scalable_resources(Client& client, std::string api_version,
                                                            TimePoint deadline);

// Lists the VolumeAttachments of a node. The server cannot select them, so it sends those of all nodes. Borrows the
// client.
Task<List<VolumeAttachment>> list_attachments_to(Client& client, std::string node, TimePoint deadline);

// Returns `answer`, the decoded response to a request for one object. Fails with Errc::decode if it is another Node
// than the requested one. Objects of other kinds are not checked.
Result<Node> only_named(std::string_view name, Result<Node> answer);
template <class T>
Result<T> only_named(std::string_view, Result<T> answer) {
  return answer;
}
// Returns the error for a collection that exceeds `limit`. `part` is appended to the message and says what most of the
// collection is; `page` is the last page that was read.
Error too_much(const Api& api, const std::string& ns, const std::string& limit, const std::string& part,
               std::string_view page);

template <class T>
Task<T> Client::get(std::string ns, std::string name, TimePoint deadline) {
  CO_TRY(auto request, Result<http::Request>(k8s::get<T>(ns, name)));
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return only_named(name, decode<T>(response.body));
}

template <class T>
Task<List<T>> Client::list(ListOptions options, TimePoint deadline, Duration page_timeout,
                           std::function<bool(const T&)> wanted) {
  List<T> all;
  ListSize size;
  Pages pages;
  pages.begin = [&] {
    all = {};
    size = {};
  };
  pages.take = [&](const std::string& body) -> Result<std::string> {
    auto page = decode_list<T>(body, wanted);
    if (!page) return std::move(page).error();
    size.read += body.size();
    for (const T& object : page->items)
      if (auto checked = check_selected(options.field_selector, object); !checked) return std::move(checked).error();
    if (wanted) std::erase_if(page->items, [&](const T& object) { return !wanted(object); });
    for (const T& object : page->items) {
      size.kept += text_in(object);
      size.memory += memory_of(object);
    }
    // All pages have the same resourceVersion. Even if they did not, a watch from the resourceVersion of the first page
    // would miss nothing, because the first page is the oldest.
    if (all.meta.resource_version.empty()) all.meta.resource_version = std::move(page->meta.resource_version);
    std::move(page->items.begin(), page->items.end(), std::back_inserter(all.items));
    size.items = all.items.size();
    if (const auto limit = excess_of(Kind<T>::budget, size)) {
      std::string part;
      if constexpr (requires { Kind<T>::largest_part(all.items); }) part = Kind<T>::largest_part(all.items);
      return too_much(Kind<T>::api, options.ns, *limit, part, body);
    }
    return std::move(page->meta.continue_token);
  };
  CO_CHECK(co_await list_pages(Kind<T>::api, options, deadline, page_timeout, std::move(pages)));
  co_return all;
}

template <class T>
Task<T> Client::create(T object, TimePoint deadline) {
  auto request = k8s::create(object, {DryRun::none, options_.validation});
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return decode<T>(response.body);
}

template <class T>
Task<T> Client::patch(std::string ns, std::string name, std::string merge_patch, TimePoint deadline, DryRun dry_run) {
  auto request = k8s::patch<T>(ns, name, std::move(merge_patch), {dry_run, options_.validation});
  CO_TRY(const auto response, co_await send(std::move(request), deadline));
  co_return only_named(name, decode<T>(response.body));
}

template <class T>
Task<> Client::remove(std::string ns, std::string name, DeleteOptions options, TimePoint deadline) {
  CO_TRY(const auto response, co_await send(k8s::remove<T>(ns, name, options), deadline));
  co_return decode_write_answer(response.body, Kind<T>::name);
}

}  // namespace haulout::k8s
