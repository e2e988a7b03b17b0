#include "rehearse/snapshot.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "k8s/status.hpp"
#include "sim/objects.hpp"

namespace haulout::rehearse {
namespace {

struct Kind {
  std::string_view resource;
  bool needed = false;
};

constexpr Kind kinds[] = {
    {"nodes", true},
    {"pods", true},
    {"namespaces"},
    {"poddisruptionbudgets"},
    {"deployments"},
    {"replicasets"},
    {"statefulsets"},
    {"daemonsets"},
    {"persistentvolumes"},
    {"persistentvolumeclaims"},
    {"volumeattachments"},
    {"mutatingwebhookconfigurations"},
    {"validatingwebhookconfigurations"},
    {"resourcequotas"},
};

std::string path_of(const Kind& kind) {
  const sim::ResourceInfo& info = *sim::find_resource(kind.resource);
  return fmt::format("{}/{}/{}", info.group.empty() ? "/api" : "/apis", info.api_version(), info.resource);
}

Result<std::string> continue_token(const std::string& list) {
  const auto json = nlohmann::json::parse(list, nullptr, false);
  if (!json.is_object()) return Error(Errc::decode, "a list of the API server is not a JSON object");
  const auto metadata = json.find("metadata");
  if (metadata == json.end() || !metadata->is_object()) return std::string();
  const auto token = metadata->find("continue");
  return token != metadata->end() && token->is_string() ? token->get<std::string>() : std::string();
}

Task<std::vector<std::string>> list(http::Transport& transport, Clock& clock, Kind kind, TimePoint deadline) {
  std::vector<std::string> pages;
  std::string token;
  do {
    http::Request request;
    request.target =
        fmt::format("{}?limit=500{}", path_of(kind), token.empty() ? "" : "&continue=" + k8s::percent_encode(token));
    request.headers.set("Accept", "application/json");
    CO_TRY(auto response, co_await transport.round_trip(std::move(request), deadline));
    if (auto failure = k8s::failure_of(response, clock.wall_now())) co_return std::move(*failure);
    CO_TRY(token, continue_token(response.body));
    pages.push_back(std::move(response.body));
  } while (!token.empty());
  co_return pages;
}

}  // namespace

Task<SnapshotRead> read_snapshot(k8s::Client& client, TimePoint deadline, std::vector<std::string> more) {
  SnapshotRead read{{.read_at = client.clock().wall_now()}};
  std::vector<Kind> all(std::begin(kinds), std::end(kinds));
  for (const std::string& kind : more) all.push_back({kind});
  for (const Kind& kind : all) {
    auto pages = co_await list(client.transport(), client.clock(), kind, deadline);
    if (!pages && k8s::is_forbidden(pages.error()) && !kind.needed) {
      read.left_out.push_back(fmt::format("{}: {}", kind.resource, pages.error().message()));
      continue;
    }
    if (!pages) co_return std::move(pages).error().with_context(fmt::format("listing {}", kind.resource));
    for (std::string& page : *pages) read.snapshot.documents.push_back({std::move(page)});
  }
  co_return read;
}

}  // namespace haulout::rehearse
