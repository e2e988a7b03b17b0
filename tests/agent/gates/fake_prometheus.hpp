// A fake Prometheus whose answers a test chooses. It records each request. No I/O.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "http/transport.hpp"

namespace haulout::agent {

class FakePrometheus final : public http::Transport {
 public:
  // Returns the answer to a request. The query in the request's target is still encoded.
  std::function<Result<http::Response>(const http::Request&)> answer = [](const http::Request&) {
    return http::Response{200, {}, vector_of({})};
  };
  std::vector<http::Request> requests;

  static std::string vector_of(const std::vector<std::string>& alerts) {
    std::string result;
    for (const std::string& name : alerts)
      result += (result.empty() ? "" : ",") + (R"({"metric":{"__name__":"ALERTS","alertstate":"firing","alertname":")" +
                                               name + R"("},"value":[1767225600,"1"]})");
    return R"({"status":"success","data":{"resultType":"vector","result":[)" + result + "]}}";
  }
  void fire(std::vector<std::string> alerts) {
    answer = [alerts = std::move(alerts)](const http::Request&) { return http::Response{200, {}, vector_of(alerts)}; };
  }

  Task<http::Response> round_trip(http::Request request, TimePoint) override {
    requests.push_back(request);
    co_return answer(requests.back());
  }
  Task<std::unique_ptr<http::BodyStream>> open(http::Request, TimePoint) override {
    co_return Error(Errc::protocol, "nothing is streamed here");
  }
};

}  // namespace haulout::agent
