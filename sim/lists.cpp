#include "sim/lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.hpp"
#include "http/base64.hpp"
#include "sim/status_bodies.hpp"

namespace haulout::sim {
namespace {

// Encodes in base64url (RFC 4648 section 5) without padding.
std::string base64url(std::string_view bytes) {
  std::string text = http::base64_encode(bytes);
  text.erase(std::min(text.find('='), text.size()));
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

// Decodes base64url. Returns an empty string if the text is invalid.
std::string from_base64url(std::string text) {
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  text.append((4 - text.size() % 4) % 4, '=');
  return http::base64_decode(text).value_or("");
}

std::string token(std::int64_t revision, std::string_view last_key) {
  const nlohmann::ordered_json json = {
      {"v", "meta.k8s.io/v1"}, {"rv", revision}, {"start", std::string(last_key) + '\0'}};
  return base64url(json.dump());
}

std::string place_of(const Json& object) {
  return fmt::format("/{}/{}", ns_of(object), name_of(object));
}

std::string_view ns_in(const Json& object) {
  const auto* ns = at(object, "/metadata/namespace").get_ptr<const std::string*>();
  return ns ? *ns : std::string_view();
}

// Sorts objects, which are sorted by namespace and name, by place_of(). Only the namespaces can be in another order: if
// the name of one begins with the name of another one, because "-" comes before "/".
void sort_by_place(std::vector<Object>& objects) {
  struct OfNamespace {
    std::string_view ns;
    std::string place;  // the part of place_of() that differs
    std::ptrdiff_t begin = 0;
    std::ptrdiff_t end = 0;
  };
  std::vector<OfNamespace> parts;
  for (auto begin = objects.begin(); begin != objects.end();) {
    const std::string_view ns = ns_in(**begin);
    const auto end = std::partition_point(begin, objects.end(), [&](const Object& it) { return ns_in(*it) == ns; });
    parts.push_back({ns, std::string(ns) + '/', begin - objects.begin(), end - objects.begin()});
    begin = end;
  }
  std::vector<Object> sorted;
  sorted.reserve(objects.size());
  std::ranges::sort(parts, {}, &OfNamespace::place);
  for (const OfNamespace& part : parts)
    std::move(objects.begin() + part.begin, objects.begin() + part.end, std::back_inserter(sorted));
  objects = std::move(sorted);
}

http::Response list_body(const ResourceInfo& info, std::uint64_t revision, const std::string& next,
                         std::optional<std::size_t> remaining, const std::vector<Object>& objects, Texts& texts) {
  nlohmann::ordered_json metadata = {{"resourceVersion", std::to_string(revision)}};
  if (!next.empty()) metadata["continue"] = next;
  if (remaining) metadata["remainingItemCount"] = *remaining;
  std::string body = fmt::format(R"({{"kind":"{}List","apiVersion":"{}","metadata":{},"items":[)", info.kind,
                                 info.api_version(), metadata.dump());
  bool first = true;
  for (const Object& object : objects) {
    if (!std::exchange(first, false)) body += ',';
    body += texts.of(object);
  }
  body += "]}";
  return json_response(200, std::move(body));
}

StatusBody list_options_invalid(std::string problem) {
  StatusBody body;
  body.code = 422;
  body.reason = "Invalid";
  body.group = "meta.k8s.io";
  body.kind = "ListOptions";
  body.message = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: " + problem;
  body.causes.push_back({"FieldValueForbidden", "Forbidden: " + problem, "resourceVersionMatch"});
  return body;
}

StatusBody unreadable_revision(const std::string& text) {
  StatusBody body;
  body.message =
      fmt::format("resourceVersion: Invalid value: \"{0}\": strconv.ParseUint: parsing \"{0}\": invalid syntax", text);
  return body;
}

// Returns the Selection of the call: resource, namespace, name, field selector and label selector. If a selector is
// invalid, returns nullopt and sets *refusal.
std::optional<Selection> selection_of(const Call& call, http::Response* refusal) {
  Selection selection;
  selection.resource = call.info->resource;
  selection.ns = call.ns;
  std::string problem;
  std::string fields = call.option("fieldSelector");
  if (!call.name.empty()) fields += (fields.empty() ? "" : ",") + ("metadata.name=" + call.name);
  const auto parsed = FieldSelector::parse(fields, *call.info, &problem);
  if (!parsed) {
    *refusal = bad_request(problem).response();
    return std::nullopt;
  }
  const auto labels = Selector::from_text(call.option("labelSelector"));
  if (!labels) {
    *refusal = bad_request("unable to parse requirement: " + call.option("labelSelector")).response();
    return std::nullopt;
  }
  selection.fields = *parsed;
  selection.labels = *labels;
  selection.narrowed = !fields.empty() || !call.option("labelSelector").empty();
  return selection;
}

}  // namespace

void UsedNamespaces::note(const Change& change) {
  const std::string& ns = change.key.ns;
  if (change.type == ChangeType::added && objects_[ns]++ == 0) are_nested_.reset();
  if (change.type != ChangeType::deleted || --objects_[ns] > 0) return;
  objects_.erase(ns);
  are_nested_.reset();
}

bool UsedNamespaces::are_nested() const {
  // All names between a name and one that begins with it begin with it, too. Objects without a namespace have "".
  const auto nest = [](const auto& one, const auto& next) {
    return !one.first.empty() && next.first.starts_with(one.first);
  };
  if (!are_nested_) are_nested_ = std::adjacent_find(objects_.begin(), objects_.end(), nest) != objects_.end();
  return *are_nested_;
}

Lists::Lists(World& world) : world_(world) {
  world_.store.listen([this](const Change& change) { namespaces_.note(change); });
}

void Lists::list(const Call& call, const Reply& reply) {
  http::Response refusal;
  const auto selection = selection_of(call, &refusal);
  if (!selection) return reply(std::move(refusal));
  const std::string version = call.option("resourceVersion");
  if (!call.option("continue").empty() && !version.empty() && version != "0")
    return reply(bad_request("specifying resource version is not allowed when using continue").response());
  const auto revision = parse_number<std::uint64_t>(version.empty() ? "0" : version);
  if (!revision) return reply(unreadable_revision(version).response());
  if (*revision > world_.store.revision()) {
    // The real server waits 3 s until its cache has reached this revision, then responds with an error.
    world_.agenda.after(std::chrono::seconds(3), [this, reply, wanted = *revision] {
      reply(too_large_revision(wanted, world_.store.revision()).response());
    });
    return;
  }
  if (call.option("resourceVersionMatch") == "Exact" && *revision < world_.store.history_start())
    return reply(expired_list().response());
  const bool cached = version == "0" && world_.now() < old_cache_.until;
  reply(cached ? from_old_cache(call, *selection) : page(call, *selection));
}

void Lists::hold_cache_until(TimePoint when) {
  old_cache_ = {when, world_.store.revision(), {}};
  for (const ResourceInfo& info : all_resources())
    old_cache_.objects[std::string(info.resource)] = world_.store.list(info.resource);
}

http::Response Lists::from_old_cache(const Call& call, const Selection& selection) {
  std::vector<Object> chosen = old_cache_.objects[selection.resource];
  std::erase_if(chosen, [&](const Object& object) { return !selection.matches(*object); });
  return list_body(*call.info, old_cache_.revision, {}, std::nullopt, chosen, items_);
}

http::Response Lists::page(const Call& call, const Selection& selection) {
  // The limit does not apply to resourceVersion=0, because the real server then lists from its cache, without pages.
  const std::size_t limit =
      call.option("resourceVersion") == "0" ? 0 : parse_number<std::uint64_t>(call.option("limit")).value_or(0);
  std::uint64_t revision = world_.store.revision();
  Snapshot* begun = nullptr;
  const std::string what = fmt::format("{} {}", selection.resource, selection.ns);
  const std::string given = call.option("continue");
  std::string start;
  if (!given.empty()) {
    const Json json = Json::parse(from_base64url(given), nullptr, false);
    start = text(json, "/start");
    if (start.empty()) return bad_request("invalid continue token: continue key is not valid: " + given).response();
    const std::int64_t wanted = number(json, "/rv");
    if (wanted >= 0) {
      const auto snapshot = snapshots_.find(fmt::format("{} {}", what, wanted));
      if (snapshot == snapshots_.end())
        return expired_continue(token(-1, std::string_view(start).substr(0, start.size() - 1))).response();
      begun = &snapshot->second;
      revision = begun->revision;
    }
  }
  // The order of pages is that of the keys in etcd, which differs from the order of (namespace, name). The objects of a
  // snapshot are in this order.
  const bool sorted = !call.info->namespaced || !selection.ns.empty() || !namespaces_.are_nested();
  std::vector<Object> chosen = begun ? std::vector<Object>() : world_.store.select(selection);
  if (!sorted && (limit > 0 || !start.empty())) sort_by_place(chosen);
  // The continue token contains the last key returned and a zero byte, so that the next page begins after that key.
  const std::vector<Object>& all = begun ? begun->objects : chosen;
  const auto is_earlier = [&](const Object& object) { return place_of(*object) < start; };
  const auto first = std::partition_point(all.begin(), all.end(), is_earlier);
  if (begun)
    std::copy_if(first, all.end(), std::back_inserter(chosen),
                 [&](const Object& object) { return !selection.narrowed || selection.matches(*object); });
  else
    chosen.erase(chosen.begin(), first);
  if (limit == 0 || chosen.size() <= limit) return list_body(*call.info, revision, {}, std::nullopt, chosen, items_);

  Snapshot kept{revision, {}};
  if (begun) {
    kept = std::move(*begun);
  } else {
    kept.objects = start.empty() && !selection.narrowed ? chosen : world_.store.list(selection.resource, selection.ns);
    if (!sorted) sort_by_place(kept.objects);
  }
  const std::size_t remaining = chosen.size() - limit;
  chosen.resize(limit);
  if (snapshots_.size() >= most_snapshots) snapshots_.erase(snapshots_.begin());
  snapshots_[fmt::format("{} {}", what, revision)] = std::move(kept);
  return list_body(*call.info, revision, token(static_cast<std::int64_t>(revision), place_of(*chosen.back())),
                   selection.narrowed ? std::nullopt : std::optional(remaining), chosen, items_);
}

std::optional<WatchRequest> watch_request(const Timing& timing, const Call& call, http::Response* answer) {
  WatchRequest request;
  auto selection = selection_of(call, answer);
  if (!selection) return std::nullopt;
  request.selection = *std::move(selection);
  const bool initial = call.truthy("sendInitialEvents");
  const std::string match = call.option("resourceVersionMatch");
  if (initial && match.empty()) {
    *answer =
        list_options_invalid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan").response();
    return std::nullopt;
  }
  if (!initial && !match.empty()) {
    *answer = list_options_invalid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
                  .response();
    return std::nullopt;
  }
  const std::string version = call.option("resourceVersion");
  const auto revision = parse_number<std::uint64_t>(version.empty() ? "0" : version);
  if (!revision) {
    *answer = unreadable_revision(version).response();
    return std::nullopt;
  }
  if (*revision > 0 && !initial) request.after = revision;
  request.initial_events_end = initial;
  request.bookmarks = call.truthy("allowWatchBookmarks");
  request.timeout = timing.watch_default;
  if (const auto timeout = parse_number<std::uint64_t>(call.option("timeoutSeconds")); timeout && *timeout > 0)
    request.timeout = std::chrono::seconds(*timeout);
  *answer = json_response(200, {});
  answer->body.clear();
  return request;
}

}  // namespace haulout::sim
