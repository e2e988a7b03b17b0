#include "tests/fleet/meter.hpp"

#include <algorithm>

#include "sim/call.hpp"

namespace haulout::fleet {

class Meter::Watch final : public http::BodyStream {
 public:
  Watch(Meter& meter, std::unique_ptr<http::BodyStream> inner) : meter_(meter), inner_(std::move(inner)) {
    ++meter_.open_watches_;
  }
  ~Watch() override { --meter_.open_watches_; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  const http::ResponseHead& head() const override { return inner_->head(); }
  Task<std::string> read_some(TimePoint deadline) override {
    CO_TRY(std::string part, co_await inner_->read_some(deadline));
    meter_.counts_.bytes += part.size();
    co_return part;
  }
  bool hold_back() override { return inner_->hold_back(); }
  void read_on() override { inner_->read_on(); }

 private:
  Meter& meter_;
  std::unique_ptr<http::BodyStream> inner_;
};

std::size_t Meter::Counts::most_in_a_second() const {
  std::size_t most = 0;
  for (const auto& [second, number] : by_second) most = std::max(most, number);
  return most;
}

void Meter::count(const http::Request& request) {
  const sim::Call call = sim::parse_call(request);
  std::string kind = call.verb + " " + std::string(call.info ? call.info->resource : "-");
  if (!call.subresource.empty()) kind += "/" + call.subresource;
  if (!call.option("labelSelector").empty() || !call.option("fieldSelector").empty()) kind += " by selector";
  if (!call.option("continue").empty()) kind += ", further page";
  ++counts_.requests;
  ++counts_.kinds[kind];
  ++counts_.by_second[std::chrono::floor<std::chrono::seconds>(clock_.now().time_since_epoch())];
}

Task<http::Response> Meter::round_trip(http::Request request, TimePoint deadline) {
  count(request);
  CO_TRY(http::Response response, co_await inner_.round_trip(std::move(request), deadline));
  counts_.bytes += response.body.size();
  co_return response;
}

Task<std::unique_ptr<http::BodyStream>> Meter::open(http::Request request, TimePoint deadline) {
  count(request);
  CO_TRY(auto stream, co_await inner_.open(std::move(request), deadline));
  co_return std::unique_ptr<http::BodyStream>(std::make_unique<Watch>(*this, std::move(stream)));
}

}  // namespace haulout::fleet
