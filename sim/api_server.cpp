#include "sim/api_server.hpp"

#include <fmt/format.h>

#include <set>

#include "sim/access.hpp"

namespace haulout::sim {
namespace asio = boost::asio;

// One request in progress. The caller and the server share its ownership, because either may release it first.
struct ApiServer::Exchange {
  Exchange(asio::any_io_executor executor, http::Request request_in, bool stream_in, Duration way_back_in)
      : request(std::move(request_in)), stream(stream_in), way_back(way_back_in), changed(executor) {}
  http::Request request;
  bool stream;
  Duration way_back;
  std::shared_ptr<WatchChannel> channel;  // channel of an accepted watch, until the response is sent
  Notifier changed;
  std::optional<Result<Answer>> result;
  void finish(Result<Answer> value) {
    result.emplace(std::move(value));
    changed.notify();
  }
};

namespace {

// The body of a watch, from which the client reads the watch events.
class ChannelStream final : public http::BodyStream {
 public:
  ChannelStream(Clock& clock, http::ResponseHead head, std::shared_ptr<WatchChannel> channel)
      : clock_(clock), head_(std::move(head)), channel_(std::move(channel)) {}

  const http::ResponseHead& head() const override { return head_; }

  Task<std::string> read_some(TimePoint deadline) override {
    for (;;) {
      const TimePoint now = clock_.now();
      const bool held = held_ && channel_->end == WatchChannel::End::open;
      if (!held && something_waits()) {
        std::string line = std::move(channel_->lines.front().second);
        channel_->lines.pop_front();
        co_return line;
      }
      if (channel_->end == WatchChannel::End::reset) co_return Error(Errc::reset, "the simulated server went away");
      if (channel_->end == WatchChannel::End::proper && channel_->lines.empty()) co_return std::string();
      if (now >= deadline) co_return Error(Errc::timeout, "no event before the deadline");
      const TimePoint next = held || channel_->lines.empty() ? TimePoint::max() : channel_->lines.front().first;
      co_await channel_->changed.wait_until(clock_, std::min(deadline, next));
    }
  }

  bool hold_back() override {
    held_ = channel_->end == WatchChannel::End::open && !something_waits();
    return held_;
  }
  void read_on() override {
    if (std::exchange(held_, false)) channel_->changed.notify();
  }

 private:
  bool something_waits() const { return !channel_->lines.empty() && channel_->lines.front().first <= clock_.now(); }

  Clock& clock_;
  http::ResponseHead head_;
  std::shared_ptr<WatchChannel> channel_;
  bool held_ = false;
};

std::string http_date(WallTime time) {
  static constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", days[std::chrono::weekday(day).c_encoding()],
                     static_cast<unsigned>(date.day()), months[static_cast<unsigned>(date.month()) - 1],
                     static_cast<int>(date.year()), clock.hours().count(), clock.minutes().count(),
                     clock.seconds().count());
}

void add_server_headers(http::Response& response, WallTime now, std::size_t audit_id) {
  response.headers.add("Audit-Id", fmt::format("00000000-0000-4000-8000-{:012x}", audit_id));
  response.headers.add("Date", http_date(now));
  response.headers.add("X-Kubernetes-Pf-Flowschema-Uid", "6f6a0f6e-4a6c-4a3c-9a55-0c2f3a1b7d10");
  response.headers.add("X-Kubernetes-Pf-Prioritylevel-Uid", "2f1e8a90-52a1-4c76-8a41-7ad2f0a4c9b3");
}

using Ordered = nlohmann::ordered_json;

// Names of resources that people type, as the API server of Kubernetes has them. kubectl learns them from the server.
constexpr std::pair<std::string_view, std::string_view> short_names[] = {
    {"configmaps", "cm"},
    {"daemonsets", "ds"},
    {"deployments", "deploy"},
    {"events", "ev"},
    {"horizontalpodautoscalers", "hpa"},
    {"namespaces", "ns"},
    {"nodes", "no"},
    {"persistentvolumeclaims", "pvc"},
    {"persistentvolumes", "pv"},
    {"poddisruptionbudgets", "pdb"},
    {"pods", "po"},
    {"replicasets", "rs"},
    {"replicationcontrollers", "rc"},
    {"resourcequotas", "quota"},
    {"services", "svc"},
    {"statefulsets", "sts"},
    {"storageclasses", "sc"},
};

Ordered resource_list(std::string_view group, std::string_view group_version) {
  Ordered resources = Ordered::array();
  for (const ResourceInfo& info : all_resources()) {
    if (info.group != group) continue;
    std::string singular(info.kind);
    for (char& c : singular)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    resources.push_back({{"name", info.resource},
                         {"singularName", singular},
                         {"namespaced", info.namespaced},
                         {"kind", info.kind},
                         {"verbs", {"create", "delete", "get", "list", "patch", "update", "watch"}}});
    for (const auto& [resource, short_name] : short_names)
      if (resource == info.resource) resources.back()["shortNames"] = Ordered::array({short_name});
    if (scalable(info))
      resources.push_back({{"name", std::string(info.resource) + "/scale"},
                           {"singularName", ""},
                           {"namespaced", true},
                           {"group", "autoscaling"},
                           {"version", "v1"},
                           {"kind", "Scale"},
                           {"verbs", {"get", "patch", "update"}}});
    if (info.resource == "pods")
      resources.push_back({{"name", "pods/eviction"},
                           {"singularName", ""},
                           {"namespaced", true},
                           {"group", "policy"},
                           {"version", "v1"},
                           {"kind", "Eviction"},
                           {"verbs", {"create"}}});
  }
  return {{"kind", "APIResourceList"}, {"apiVersion", "v1"}, {"groupVersion", group_version}, {"resources", resources}};
}

bool is_served(const ResourceInfo& info, const Switches& switches) {
  return info.group != eviction_request_group || switches.eviction_requests;
}

Ordered group_list(const Switches& switches) {
  std::set<std::string> seen;
  Ordered groups = Ordered::array();
  for (const ResourceInfo& info : all_resources()) {
    if (!is_served(info, switches) || info.group.empty() || !seen.insert(std::string(info.group)).second) continue;
    const Ordered version = {{"groupVersion", info.api_version()}, {"version", info.version}};
    groups.push_back({{"name", info.group}, {"versions", Ordered::array({version})}, {"preferredVersion", version}});
  }
  return {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", groups}};
}

// Responds to requests for the version, health and discovery, and with 404 to any other path.
http::Response discover(const std::string& path, const Switches& switches) {
  if (path == "/readyz" || path == "/livez" || path == "/healthz") return plain_text(200, "ok");
  if (path == "/version")
    return json_response(
        200, R"({"major":"1","minor":"36","gitVersion":"v1.36.3+haulout-sim","platform":"simulated/cluster"})");
  if (path == "/api") return json_response(200, R"({"kind":"APIVersions","versions":["v1"]})");
  if (path == "/api/v1") return json_response(200, resource_list("", "v1").dump());
  if (path == "/apis") return json_response(200, group_list(switches).dump());
  for (const ResourceInfo& info : all_resources())
    if (is_served(info, switches) && !info.group.empty() && path == "/apis/" + info.api_version())
      return json_response(200, resource_list(info.group, info.api_version()).dump());
  return plain_text(404, "404 page not found\n");
}

}  // namespace

ApiServer::ApiServer(World& world, asio::any_io_executor executor)
    : world_(world),
      executor_(executor),
      watches_(world, texts_, executor),
      lists_(world),
      objects_(world, texts_),
      evictions_(world) {}

Task<ApiServer::Answer> ApiServer::exchange(http::Request request, TimePoint deadline, bool stream) {
  const Timing& timing = world_.timing;
  const Duration latency = timing.api_latency + world_.rng.between(Duration::zero(), timing.api_latency_jitter);
  auto shared = std::make_shared<Exchange>(executor_, std::move(request), stream, latency / 2);
  world_.agenda.after(latency / 2, [this, shared] { arrive(shared); });
  while (!shared->result) {
    if (world_.now() >= deadline) co_return Error(Errc::timeout, "no answer before the deadline");
    co_await shared->changed.wait_until(world_.agenda.clock(), deadline);
  }
  co_return *std::move(shared->result);
}

Task<http::Response> ApiServer::round_trip(http::Request request, TimePoint deadline) {
  CO_TRY(Answer answer, co_await exchange(std::move(request), deadline, false));
  co_return std::move(answer.response);
}

Task<std::unique_ptr<http::BodyStream>> ApiServer::open(http::Request request, TimePoint deadline) {
  CO_TRY(Answer answer, co_await exchange(std::move(request), deadline, true));
  std::unique_ptr<http::BodyStream> stream;
  if (answer.channel) {
    http::ResponseHead head{answer.response.status, std::move(answer.response.headers)};
    stream = std::make_unique<ChannelStream>(world_.agenda.clock(), std::move(head), std::move(answer.channel));
  } else {
    stream = std::make_unique<WholeBody>(std::move(answer.response));
  }
  co_return std::move(stream);
}

void ApiServer::arrive(const std::shared_ptr<Exchange>& exchange) {
  if (world_.now() < world_.switches.refused_until) {
    exchange->finish(Error(Errc::unreachable, "connect: connection refused (simulated)"));
    return;
  }
  const Call call = parse_call(std::move(exchange->request));
  const std::size_t index = audit_start_ + audit_.size();
  audit_.push_back(entry_of(call, user_of(world_.switches, call), world_.now()));
  for (; audit_.size() > std::max<std::size_t>(1, most_audit_); ++audit_start_) audit_.pop_front();
  const Reply reply = [this, exchange, index, epoch = epoch_](http::Response response) {
    if (index >= audit_start_) {
      AuditEntry& entry = audit_[index - audit_start_];
      entry.answered = world_.now();
      entry.status = response.status;
      const bool writes = entry.verb != "get" && entry.verb != "list" && entry.verb != "watch";
      entry.applied = writes && !entry.dry_run && response.status >= 200 && response.status < 300;
      for (const auto& listener : answer_listeners_) listener(AuditEntry(entry));
    }
    add_server_headers(response, world_.wall_now(), index);
    if (epoch != epoch_) return exchange->finish(Error(Errc::reset, "the simulated server went away"));
    world_.agenda.after(exchange->way_back, [exchange, response = std::move(response)]() mutable {
      exchange->finish(Answer{std::move(response), std::move(exchange->channel)});
    });
  };
  dispatch(exchange, call, reply);
}

std::optional<http::Response> ApiServer::refused(const Call& call) {
  if (auto refusal = refused_to_caller(world_, call)) return refusal;
  for (const Intercept& intercept : intercepts_)
    if (auto answer = intercept(call, audit_.back())) return answer;
  return std::nullopt;
}

void ApiServer::dispatch(const std::shared_ptr<Exchange>& exchange, const Call& call, const Reply& reply) {
  if (auto refusal = refused(call)) return reply(*std::move(refusal));
  if (!call.info || !is_served(*call.info, world_.switches)) {
    auto reviewed = review(world_, call);
    return reply(reviewed ? *std::move(reviewed) : discover(call.path, world_.switches));
  }
  if (call.verb == "watch") {
    if (!exchange->stream) return reply(bad_request("the simulated server streams watches only").response());
    http::Response answer;
    if (auto request = watch_request(world_.timing, call, &answer))
      exchange->channel = watches_.open(*std::move(request));
    return reply(std::move(answer));
  }
  dispatch_object(call, reply);
}

void ApiServer::dispatch_object(const Call& call, const Reply& reply) {
  if (call.subresource == "eviction" && call.info->resource == "pods") {
    if (call.verb != "create") return reply(method_not_allowed().response());
    const std::string type = call.header("Content-Type");
    if (!type.empty() && type != "application/json") return reply(unsupported_media_type().response());
    return evict(call, reply);
  }
  if (call.subresource == "scale" && scalable(*call.info))
    return reply(call.verb == "get" ? objects_.get_scale(call) : method_not_allowed().response());
  if (!call.subresource.empty() && call.subresource != "status") return reply(plain_text(404, "404 page not found\n"));
  if (call.verb == "list") return lists_.list(call, reply);
  if (call.verb == "get") return reply(objects_.get(call));
  if (call.verb == "create") return reply(objects_.create(call));
  if (call.verb == "update") return reply(objects_.update(call));
  if (call.verb == "patch") return reply(objects_.patch(call));
  if (call.verb == "delete") return reply(objects_.remove(call));
  reply(method_not_allowed().response());
}

void ApiServer::evict(const Call& call, const Reply& reply) {
  AuditEntry& entry = audit_.back();
  Admission admission;
  for (const Webhook& webhook : webhooks_) {
    if (entry.dry_run) break;
    Admission one = webhook(entry);
    admission.takes += one.takes;
    admission.as_dry_run |= one.as_dry_run;
    if (!admission.refusal) admission.refusal = std::move(one.refusal);
  }
  entry.dry_run |= admission.as_dry_run;
  const auto judged = [this, call, reply, admission] {
    if (admission.refusal) return reply(admission.refusal->response());
    evictions_.handle(call, reply, admission.as_dry_run);
  };
  if (admission.takes == Duration::zero()) return judged();
  world_.agenda.after(admission.takes, judged);
}

void ApiServer::drop_connections() {
  ++epoch_;
  watches_.end_all(WatchChannel::End::reset);
}

}  // namespace haulout::sim
