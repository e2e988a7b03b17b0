#include "agent/rehearsal/snapshot_json.hpp"

#include <nlohmann/json.hpp>

#include "k8s/status.hpp"

namespace haulout::agent {
namespace {

struct Kind {
  std::string_view what;
  std::string_view path;
  bool needed = false;
};

constexpr Kind kinds[] = {
    {"nodes", "/api/v1/nodes", true},
    {"pods", "/api/v1/pods", true},
    {"namespaces", "/api/v1/namespaces"},
    {"poddisruptionbudgets", "/apis/policy/v1/poddisruptionbudgets"},
    {"deployments", "/apis/apps/v1/deployments"},
    {"replicasets", "/apis/apps/v1/replicasets"},
    {"statefulsets", "/apis/apps/v1/statefulsets"},
    {"daemonsets", "/apis/apps/v1/daemonsets"},
    {"persistentvolumes", "/api/v1/persistentvolumes"},
    {"persistentvolumeclaims", "/api/v1/persistentvolumeclaims"},
    {"volumeattachments", "/apis/storage.k8s.io/v1/volumeattachments"},
};

std::string percent_encoded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~';
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

Result<std::string> continue_token(const std::string& list) {
  const auto json = nlohmann::json::parse(list, nullptr, false);
  if (!json.is_object()) return Error(Errc::decode, "a list of the API server is no JSON object");
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
        fmt::format("{}?limit=500{}", kind.path, token.empty() ? "" : "&continue=" + percent_encoded(token));
    request.headers.set("Accept", "application/json");
    CO_TRY(auto response, co_await transport.round_trip(std::move(request), deadline));
    if (auto failure = k8s::failure_of(response, clock.wall_now())) co_return std::move(*failure);
    CO_TRY(token, continue_token(response.body));
    pages.push_back(std::move(response.body));
  } while (!token.empty());
  co_return pages;
}

}  // namespace

Task<Snapshot> read_snapshot(k8s::Client& client, TimePoint deadline) {
  Snapshot snapshot;
  for (const Kind& kind : kinds) {
    auto pages = co_await list(client.transport(), client.clock(), kind, deadline);
    if (!pages && k8s::is_forbidden(pages.error()) && !kind.needed) {
      snapshot.left_out.push_back(fmt::format("{}: {}", kind.what, pages.error().message()));
      continue;
    }
    if (!pages) co_return std::move(pages).error().with_context(fmt::format("listing {}", kind.what));
    for (std::string& page : *pages) snapshot.documents.push_back(std::move(page));
  }
  co_return snapshot;
}

}  // namespace haulout::agent
