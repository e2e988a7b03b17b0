#include "tests/worlds/faults.hpp"

#include <fmt/format.h>

#include "sim/api_server.hpp"
#include "sim/call.hpp"
#include "tests/worlds/fault_answers.hpp"

namespace haulout::sim {
namespace {

Error broken() {
  return Error(Errc::reset, "connection reset by peer (injected)");
}
Error silence() {
  return Error(Errc::timeout, "no byte before the deadline (injected)");
}

class FaultyStream final : public http::BodyStream {
 public:
  FaultyStream(Clock& clock, Rng& rng, Fault fault, std::unique_ptr<http::BodyStream> inner)
      : clock_(clock), rng_(rng), fault_(std::move(fault)), inner_(std::move(inner)) {
    strikes_at_ = fault_.after > Duration::zero() ? saturating_add(clock_.now(), fault_.after) : TimePoint::max();
  }

  const http::ResponseHead& head() const override { return inner_->head(); }

  Task<std::string> read_some(TimePoint deadline) override {
    if (!rest_.empty()) co_return next_part();
    if (finished_) co_return std::string();
    if (fault_.kind == FaultKind::slow) co_await clock_.sleep_until(clock_.now() + fault_.delay);
    const bool due = pieces_ >= fault_.after_pieces || clock_.now() >= strikes_at_;
    if (due) co_return co_await strike(deadline);
    auto piece = co_await inner_->read_some(std::min(deadline, strikes_at_));
    if (!piece && piece.error().code() == Errc::timeout && clock_.now() >= strikes_at_)
      co_return co_await strike(deadline);
    if (!piece || piece->empty()) co_return piece;
    ++pieces_;
    if (fault_.kind != FaultKind::split) co_return piece;
    rest_ = *std::move(piece);
    co_return next_part();
  }

  bool hold_back() override { return rest_.empty() && !finished_ && inner_->hold_back(); }
  void read_on() override { inner_->read_on(); }

 private:
  Task<std::string> strike(TimePoint deadline) {
    if (fault_.kind == FaultKind::stall) {
      co_await clock_.sleep_until(deadline);
      co_return silence();
    }
    if (fault_.kind == FaultKind::garbage) {
      strike_no_more();
      co_return std::string(noise);
    }
    if (fault_.kind == FaultKind::no_kind || fault_.kind == FaultKind::no_uid) {
      auto piece = co_await inner_->read_some(deadline);
      if (!piece || piece->empty()) co_return piece;
      strike_no_more();
      co_return spoilt(fault_.kind, *std::move(piece));
    }
    if (fault_.kind == FaultKind::error_event) {
      finished_ = true;
      co_return error_event(fault_);
    }
    if (fault_.kind == FaultKind::end) {
      finished_ = true;
      co_return std::string();
    }
    if (fault_.kind == FaultKind::half_line) {
      auto piece = co_await inner_->read_some(deadline);
      if (!piece || piece->size() < 2) co_return piece;
      finished_ = true;
      co_return piece->substr(0, piece->size() / 2);
    }
    co_return broken();
  }

  void strike_no_more() {
    strikes_at_ = TimePoint::max();
    fault_.after_pieces = SIZE_MAX;
  }

  std::string next_part() {
    const auto size = static_cast<std::size_t>(rng_.between(std::uint64_t{1}, std::uint64_t{rest_.size()}));
    std::string part = rest_.substr(0, size);
    rest_.erase(0, size);
    return part;
  }

  Clock& clock_;
  Rng& rng_;
  Fault fault_;
  std::unique_ptr<http::BodyStream> inner_;
  TimePoint strikes_at_;
  std::size_t pieces_ = 0;
  std::string rest_;
  bool finished_ = false;
};

// A stream that is counted as open as long as it exists.
class CountedStream final : public http::BodyStream {
 public:
  CountedStream(std::shared_ptr<std::size_t> count, std::unique_ptr<http::BodyStream> inner)
      : count_(std::move(count)), inner_(std::move(inner)) {
    ++*count_;
  }
  ~CountedStream() override { --*count_; }
  CountedStream(const CountedStream&) = delete;
  CountedStream& operator=(const CountedStream&) = delete;

  const http::ResponseHead& head() const override { return inner_->head(); }
  Task<std::string> read_some(TimePoint deadline) override { return inner_->read_some(deadline); }
  bool hold_back() override { return inner_->hold_back(); }
  void read_on() override { inner_->read_on(); }

 private:
  std::shared_ptr<std::size_t> count_;
  std::unique_ptr<http::BodyStream> inner_;
};

// Returns the request without its field selector, as some proxies pass it on.
// Returns the option whose value the server ignores; empty for other faults.
std::string_view ignored_option(FaultKind kind) {
  return kind == FaultKind::unselected ? "fieldSelector" : kind == FaultKind::unlabelled ? "labelSelector" : "";
}

http::Request without(std::string_view option, http::Request request) {
  const std::size_t begin = request.target.find(std::string(option) + "=");
  const std::size_t end = request.target.find('&', begin);
  request.target.erase(begin, end == std::string::npos ? end : end + 1 - begin);
  return request;
}

bool concerns_streams_only(FaultKind kind) {
  return kind == FaultKind::cut || kind == FaultKind::end || kind == FaultKind::half_line || kind == FaultKind::split ||
         kind == FaultKind::error_event;
}

}  // namespace

std::string_view to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::refuse: return "refuse";
    case FaultKind::dns: return "dns";
    case FaultKind::tls: return "tls";
    case FaultKind::protocol: return "protocol";
    case FaultKind::credentials: return "credentials";
    case FaultKind::crowded: return "crowded";
    case FaultKind::reset_before: return "reset-before";
    case FaultKind::reset_after: return "reset-after";
    case FaultKind::stall: return "stall";
    case FaultKind::slow: return "slow";
    case FaultKind::truncate: return "truncate";
    case FaultKind::html: return "html";
    case FaultKind::garbage: return "garbage";
    case FaultKind::hidden_error: return "hidden-error";
    case FaultKind::no_kind: return "no-kind";
    case FaultKind::no_uid: return "no-uid";
    case FaultKind::unselected: return "unselected";
    case FaultKind::unlabelled: return "unlabelled";
    case FaultKind::redirect: return "redirect";
    case FaultKind::throttle: return "throttle";
    case FaultKind::server_error: return "server-error";
    case FaultKind::future: return "future";
    case FaultKind::cut: return "cut";
    case FaultKind::end: return "end";
    case FaultKind::error_event: return "error-event";
    case FaultKind::half_line: return "half-line";
    case FaultKind::split: return "split";
  }
  return "";
}

FaultTransport::FaultTransport(http::Transport& inner, Clock& clock, Rng& rng, std::vector<FaultRule> plan)
    : inner_(inner), clock_(clock), rng_(rng) {
  for (FaultRule& rule : plan) add(std::move(rule));
}

std::optional<Fault> FaultTransport::choose(const http::Request& request) {
  const Call call = parse_call(request);
  std::string resource = call.info ? std::string(call.info->resource) : call.path;
  if (!call.subresource.empty()) resource += "/" + call.subresource;
  const TimePoint now = clock_.now();
  for (Entry& entry : plan_) {
    const FaultRule& rule = entry.rule;
    if (!rule.verb.empty() && rule.verb != call.verb) continue;
    if (!rule.resource.empty() && rule.resource != resource) continue;
    if (now < rule.from || now >= rule.until) continue;
    if (concerns_streams_only(rule.fault.kind) && call.verb != "watch") continue;
    const std::string_view ignored = ignored_option(rule.fault.kind);
    if (!ignored.empty() && call.option(std::string(ignored)).empty()) continue;
    if (rule.fault.kind == FaultKind::crowded && *open_streams_ < rule.fault.most_streams) continue;
    if (entry.seen++ < rule.skip || entry.struck >= rule.count) continue;
    if (rule.percent < 100 && !rng_.chance(rule.percent)) continue;
    ++entry.struck;
    struck_.push_back(fmt::format("{} {} {}", to_string(rule.fault.kind), call.verb, resource));
    return rule.fault;
  }
  return std::nullopt;
}

Task<http::Response> FaultTransport::round_trip(http::Request request, TimePoint deadline) {
  const auto fault = choose(request);
  if (!fault) co_return co_await inner_.round_trip(std::move(request), deadline);
  if (fault->kind == FaultKind::slow) {
    co_await clock_.sleep_until(std::min(deadline, clock_.now() + fault->delay));
    co_return co_await inner_.round_trip(std::move(request), deadline);
  }
  // Every failure takes at least 1 ms, so that a loop that retries without waiting still advances time.
  co_await clock_.sleep_until(std::min(deadline, clock_.now() + std::chrono::milliseconds(1)));
  if (auto response = answer_in_place(*fault)) co_return *std::move(response);
  if (auto failure = failure_in_place(*fault)) co_return *std::move(failure);
  const std::string_view ignored = ignored_option(fault->kind);
  if (!ignored.empty()) request = without(ignored, std::move(request));
  auto answer = co_await inner_.round_trip(std::move(request), deadline);
  if (!answer) co_return answer;
  if (fault->kind == FaultKind::reset_after) co_return broken();
  if (fault->kind == FaultKind::stall) {
    co_await clock_.sleep_until(deadline);
    co_return silence();
  }
  answer->body = spoilt(fault->kind, std::move(answer->body));
  co_return answer;
}

Task<std::unique_ptr<http::BodyStream>> FaultTransport::open(http::Request request, TimePoint deadline) {
  CO_TRY(auto stream, co_await open_with_faults(std::move(request), deadline));
  stream = std::make_unique<CountedStream>(open_streams_, std::move(stream));
  co_return std::move(stream);
}

Task<std::unique_ptr<http::BodyStream>> FaultTransport::open_with_faults(http::Request request, TimePoint deadline) {
  auto fault = choose(request);
  if (!fault) co_return co_await inner_.open(std::move(request), deadline);
  co_await clock_.sleep_until(std::min(deadline, clock_.now() + std::chrono::milliseconds(1)));
  std::unique_ptr<http::BodyStream> stream;
  // A stream with `garbage` begins without a fault; FaultyStream adds the garbage later.
  if (auto response = fault->kind == FaultKind::garbage ? std::nullopt : answer_in_place(*fault)) {
    stream = std::make_unique<WholeBody>(*std::move(response));
    co_return std::move(stream);
  }
  if (auto failure = failure_in_place(*fault)) co_return *std::move(failure);
  if (fault->kind == FaultKind::reset_after) co_return broken();
  const bool never_begins =
      fault->kind == FaultKind::stall && fault->after_pieces == SIZE_MAX && fault->after == Duration{};
  if (never_begins) {
    co_await clock_.sleep_until(deadline);
    co_return silence();
  }
  if (const std::string_view ignored = ignored_option(fault->kind); !ignored.empty())
    co_return co_await inner_.open(without(ignored, std::move(request)), deadline);
  CO_TRY(auto inner, co_await inner_.open(std::move(request), deadline));
  if (fault->kind == FaultKind::truncate) fault->kind = FaultKind::half_line;
  stream = std::make_unique<FaultyStream>(clock_, rng_, *std::move(fault), std::move(inner));
  co_return std::move(stream);
}

}  // namespace haulout::sim
