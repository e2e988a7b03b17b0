#include "rehearse/snapshot.hpp"

#include <fmt/format.h>

#include "k8s/codec.hpp"
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

Task<std::vector<std::string>> list(k8s::Client& client, Kind kind, TimePoint deadline) {
  const sim::ResourceInfo& info = *sim::find_resource(kind.resource);
  const std::string group_version = info.api_version();
  const k8s::Api api{.group_version = group_version,
                     .plural = info.resource,
                     .scope = info.namespaced ? k8s::Scope::namespaced : k8s::Scope::cluster,
                     .kind = info.kind,
                     .many = info.resource};
  std::vector<std::string> pages;
  k8s::Client::Pages reader;
  reader.begin = [&] { pages.clear(); };
  reader.take = [&](std::string& page) {
    auto token = k8s::decode_continue_token(page);
    if (token) pages.push_back(std::move(page));
    return token;
  };
  CO_CHECK(co_await client.list_pages(api, {.limit = k8s::usual_page}, deadline, k8s::longest_page, std::move(reader)));
  co_return pages;
}

}  // namespace

Task<SnapshotRead> read_snapshot(k8s::Client& client, TimePoint deadline, std::vector<std::string> more) {
  SnapshotRead read{{.read_at = client.clock().wall_now()}};
  std::vector<Kind> all(std::begin(kinds), std::end(kinds));
  for (const std::string& kind : more) all.push_back({kind});
  for (const Kind& kind : all) {
    auto pages = co_await list(client, kind, deadline);
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
