#include <fmt/format.h>

#include "k8s/status.hpp"
#include "placement/fit_rules.hpp"

namespace haulout::placement {
namespace {

using Essence = Object (*)(const Json&);

// As in k8s::Client. client-go restarts only once before it lists unpaged.
constexpr int restarts_before_unpaged = 2;

struct Collection {
  std::string path;
  std::string_view kind;
  Essence essence;
};

// Adds the items of one page to `into`, and returns the token of the next page. Fails if `items` is missing; null means
// an empty list.
Result<std::string> read_page(const std::string& body, const Collection& what, std::vector<Object>& into) {
  const Json list = Json::parse(body, nullptr, false);
  const std::string kind = text(list, "/kind");
  if (kind != what.kind)
    return Error(Errc::decode, fmt::format("expected a {}, got {}", what.kind, kind.empty() ? "no list" : kind));
  const auto items = list.find("items");
  if (items == list.end() || !(items->is_array() || items->is_null()))
    return Error(Errc::decode, fmt::format("{} makes no sense: items are missing", what.kind));
  for (const Json& item : *items) into.push_back(what.essence(item));
  return text(list, "/metadata/continue");
}

Task<std::vector<Object>> list_pages(k8s::Client& client, Collection what, std::uint32_t page_size,
                                     TimePoint deadline) {
  std::vector<Object> all;
  std::string token;
  do {
    http::Request request;
    request.target = what.path;
    char separator = what.path.find('?') == std::string::npos ? '?' : '&';
    if (page_size != 0) request.target += fmt::format("{}limit={}", std::exchange(separator, '&'), page_size);
    if (!token.empty()) request.target += fmt::format("{}continue={}", separator, k8s::percent_encode(token));
    request.headers.set("Accept", "application/json");
    const TimePoint page_deadline = std::min(deadline, saturating_add(client.clock().now(), k8s::longest_page));
    CO_TRY(const auto response, co_await client.transport().round_trip(std::move(request), page_deadline));
    if (auto failure = k8s::failure_of(response, client.clock().wall_now())) co_return std::move(*failure);
    CO_TRY(auto next, read_page(response.body, what, all));
    if (!next.empty() && next == token)
      co_return Error(Errc::decode, "the list never ends: the server sent the same continue token twice");
    token = std::move(next);
  } while (!token.empty());
  co_return all;
}

Task<std::vector<Object>> list(k8s::Client& client, Collection what, std::uint32_t page_size, TimePoint deadline) {
  for (int restarts = 0;; ++restarts) {
    auto all = co_await list_pages(client, what, page_size, deadline);
    if (all || !k8s::is_expired(all.error()) || page_size == 0) co_return all;
    if (restarts == restarts_before_unpaged) page_size = 0;
  }
}

}  // namespace

Task<std::vector<PodFit>> check_fit(k8s::Client& client, FitQuestion question, std::uint32_t page_size,
                                    TimePoint deadline) {
  ClusterView view;
  auto nodes = co_await list(client, {"/api/v1/nodes", "NodeList", essence_of_node}, page_size, deadline);
  if (!nodes) co_return std::move(nodes).error().with_context("the nodes of the cluster could not be listed");
  view.nodes = *std::move(nodes);
  auto pods = co_await list(
      client,
      {"/api/v1/pods?fieldSelector=status.phase!%3DSucceeded%2Cstatus.phase!%3DFailed", "PodList", essence_of_pod},
      page_size, deadline);
  if (!pods) co_return std::move(pods).error().with_context("the pods of the cluster could not be listed");
  view.pods = *std::move(pods);
  co_return judge(view, question);
}

}  // namespace haulout::placement
