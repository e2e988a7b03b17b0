// Interface through which every request is sent. Implemented by the real client, by the simulated API server, and by
// decorators of either (credentials, counting, faults, logging).
//
// A response of any HTTP status is a success here. Operations fail with Errc::timeout, dns, unreachable, tls, reset,
// protocol, invalid (malformed request) or unavailable (a proxy refuses). After dns and unreachable no part of the
// request was sent. After any other failure the caller has to assume that the server may have executed the request.
// All operations are cancellable (by terminal cancellation). A transport must outlive its operations and its streams.
#pragma once

#include <memory>
#include <string>

#include "http/message.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::http {

// A response whose body is read as it arrives, such as a watch. Destroying it before the end of the body closes its
// connection.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  virtual const ResponseHead& head() const = 0;
  // Returns at least one byte of the body, or an empty string at its proper end. Fails with Errc::reset if the
  // connection ended earlier, and with Errc::timeout if nothing arrived before the deadline. After a failure the stream
  // is unusable.
  virtual Task<std::string> read_some(TimePoint deadline) = 0;
  // Reduces the wake-ups of a reader that can wait; called between two reads. As far as the system supports it, the
  // next read_some() then returns only when much data has arrived, the stream ends, its deadline passes or read_on() is
  // called. Returns false and changes nothing if data can already be read or if this is not supported.
  virtual bool hold_back() { return false; }
  // Ends the effect of hold_back(). May be called while read_some() is in progress.
  virtual void read_on() {}
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Sends the request and returns the complete response.
  virtual Task<Response> round_trip(Request request, TimePoint deadline) = 0;
  // Sends the request and returns once the head of the response has arrived. The deadline applies until then.
  virtual Task<std::unique_ptr<BodyStream>> open(Request request, TimePoint deadline) = 0;
};

}  // namespace haulout::http
