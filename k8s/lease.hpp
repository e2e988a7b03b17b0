// Leases: the struct, its place in the API, its decoder and its encoder. Pure.
#pragma once

#include <fmt/format.h>

#include "k8s/kind.hpp"

namespace haulout::k8s {

struct Lease {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> labels;
  std::string holder;  // spec.holderIdentity
  std::optional<WallTime> acquire_time;
  std::optional<WallTime> renew_time;
  std::optional<OwnerReference> owner;  // the first of its ownerReferences
  std::size_t owners = 0;               // number of its ownerReferences; read only

  std::string key() const { return ns + "/" + name; }
  bool operator==(const Lease&) const = default;
};

template <>
struct Kind<Lease> {
  static constexpr std::string_view name = "Lease";
  static constexpr Api api{
      "coordination.k8s.io/v1", "leases", Scope::one_namespace, Names::ours, "Lease", "Leases", true};
  // These limits are far above what slots need: the Lease of a slot takes less than a kilobyte, and
  // packaging/kustomize/base/quota-slots.yaml allows 1,000 of them.
  static constexpr ListBudget budget{10'000, megabytes(32), megabytes(8), kilobytes(1)};
  static constexpr std::array<std::string_view, 2> dropped = {"managedFields", "annotations"};
  static constexpr codec::Room labels{16, 4 * 1024, "haulout.dev/"};

  static void read(const codec::Object& json, Lease& lease) {
    const auto metadata = json.object("metadata");
    codec::read_identity(metadata, lease);
    lease.labels = metadata.strings("labels", labels);
    metadata.each("ownerReferences", [&](const codec::Object& owner) {
      if (lease.owners++ == 0) lease.owner = codec::read_owner(owner);
    });
    const auto spec = json.object("spec");
    lease.holder = spec.string("holderIdentity");
    lease.acquire_time = spec.time("acquireTime");
    lease.renew_time = spec.time("renewTime");
  }
  // Writes times with exactly six decimals, as the API requires.
  static std::string encode(const Lease& lease) {
    codec::Writer metadata;
    metadata.text("name", lease.name).text("namespace", lease.ns).texts_if_any("labels", lease.labels);
    if (lease.owner) metadata.raw("ownerReferences", "[" + encode_owner(*lease.owner) + "]");
    codec::Writer spec;
    spec.text_if_any("holderIdentity", lease.holder);
    if (lease.acquire_time) spec.text("acquireTime", format_micro_time(*lease.acquire_time));
    if (lease.renew_time) spec.text("renewTime", format_micro_time(*lease.renew_time));
    return codec::Writer()
        .text("apiVersion", api.group_version)
        .text("kind", name)
        .object("metadata", metadata)
        .object("spec", spec)
        .str();
  }
  static std::size_t text_in(const Lease& lease) { return text_of(lease.labels) + lease.holder.size(); }
  // Returns text for the message about a collection that is too large: which holder has the most Leases. Returns an
  // empty string if there are none.
  static std::string largest_part(const std::vector<Lease>& leases) {
    std::map<std::string_view, std::size_t> count;
    for (const Lease& lease : leases) ++count[lease.holder];
    const auto most = std::max_element(count.begin(), count.end(),
                                       [](const auto& one, const auto& other) { return one.second < other.second; });
    return most == count.end() ? std::string() : fmt::format("; {} of them are held by {}", most->second, most->first);
  }

 private:
  static std::string encode_owner(const OwnerReference& owner) {
    codec::Writer out;
    out.text("apiVersion", owner.api_version).text("kind", owner.kind).text("name", owner.name).text("uid", owner.uid);
    if (owner.controller) out.raw("controller", "true");
    return out.str();
  }
};

}  // namespace haulout::k8s
