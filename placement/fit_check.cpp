#include <fmt/format.h>

#include "k8s/status.hpp"
#include "placement/fit_rules.hpp"

namespace haulout::placement {
namespace {

using Essence = Object (*)(const Json&);

// Adds the items of one page; returns the token of the next.
Result<std::string> read_page(const std::string& body, Essence essence, std::vector<Object>& into) {
  const Json list = Json::parse(body, nullptr, false);
  if (!at(list, "/items").is_array() && !at(list, "/metadata").is_object())
    return Error(Errc::decode, "what was answered is no list");
  for (const Json& item : at(list, "/items")) into.push_back(essence(item));
  return text(list, "/metadata/continue");
}

Task<std::vector<Object>> list(k8s::Client& client, std::string path, Essence essence, std::uint32_t page_size,
                               TimePoint deadline) {
  std::vector<Object> all;
  std::string token;
  do {
    http::Request request;
    request.target = path;
    char separator = path.find('?') == std::string::npos ? '?' : '&';
    if (page_size != 0) request.target += fmt::format("{}limit={}", std::exchange(separator, '&'), page_size);
    if (!token.empty()) request.target += fmt::format("{}continue={}", separator, k8s::percent_encode(token));
    request.headers.set("Accept", "application/json");
    CO_TRY(const auto response, co_await client.transport().round_trip(std::move(request), deadline));
    if (auto failure = k8s::failure_of(response, client.clock().wall_now())) co_return std::move(*failure);
    CO_TRY(token, read_page(response.body, essence, all));
  } while (!token.empty());
  co_return all;
}

}  // namespace

Task<std::vector<PodFit>> check_fit(k8s::Client& client, FitQuestion question, std::uint32_t page_size,
                                    TimePoint deadline) {
  ClusterView view;
  auto nodes = co_await list(client, "/api/v1/nodes", essence_of_node, page_size, deadline);
  if (!nodes) co_return std::move(nodes).error().with_context("the nodes of the cluster could not be listed");
  view.nodes = *std::move(nodes);
  auto pods = co_await list(client, "/api/v1/pods?fieldSelector=status.phase!%3DSucceeded%2Cstatus.phase!%3DFailed",
                            essence_of_pod, page_size, deadline);
  if (!pods) co_return std::move(pods).error().with_context("the pods of the cluster could not be listed");
  view.pods = *std::move(pods);
  co_return judge(view, question);
}

}  // namespace haulout::placement
