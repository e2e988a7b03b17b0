// A complete response in the form of a stream (BodyStream). It is the answer to a watch request that the server
// refuses, or that a proxy answers with a page of its own. No I/O.
#pragma once

#include <utility>

#include "http/message.hpp"
#include "http/transport.hpp"

namespace haulout::sim {

class WholeBody final : public http::BodyStream {
 public:
  explicit WholeBody(http::Response response)
      : head_{response.status, std::move(response.headers)}, body_(std::move(response.body)) {}
  const http::ResponseHead& head() const override { return head_; }
  Task<std::string> read_some(TimePoint) override { co_return std::exchange(body_, {}); }

 private:
  http::ResponseHead head_;
  std::string body_;
};

}  // namespace haulout::sim
