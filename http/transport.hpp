// The port through which every request leaves: the real client, the simulated API server, and decorators around either
// (credentials, counting, faults, logging).
//
// An answer of any HTTP status is success here; failures are timeout, dns, unreachable, tls, reset and protocol.
// All operations may be cancelled (terminal). Requests are taken by value; a transport outlives its streams.
#pragma once

#include <memory>
#include <string>

#include "http/message.hpp"
#include "retry/clock.hpp"
#include "retry/result.hpp"

namespace haulout::http {

// A response whose body is read as it arrives (a watch). Dropping it closes its connection.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  virtual const ResponseHead& head() const = 0;
  // At least one byte, or an empty string at the proper end of the body. Errc::reset if the connection ended before
  // that; Errc::timeout if nothing came before the deadline. After a failure the stream is spent.
  virtual Task<std::string> read_some(TimePoint deadline) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual Task<Response> round_trip(Request request, TimePoint deadline) = 0;
  // Returns when the head of the response is there.
  virtual Task<std::unique_ptr<BodyStream>> open(Request request, TimePoint deadline) = 0;
};

}  // namespace haulout::http
