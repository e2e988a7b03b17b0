// The port through which every request leaves: the real client, the simulated API server, and decorators around either
// (credentials, counting, faults, logging).
//
// An answer of any HTTP status is success here; failures are timeout, dns, unreachable, tls, reset and protocol. After
// dns and unreachable nothing of the request was sent; after any other failure it may have been carried out.
// All operations may be cancelled (terminal). Requests are taken by value; a transport outlives its streams.
#pragma once

#include <memory>
#include <string>

#include "http/message.hpp"
#include "retry/clock.hpp"
#include "retry/task.hpp"

namespace haulout::http {

// A response whose body is read as it arrives (a watch). Dropping it closes its connection.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  virtual const ResponseHead& head() const = 0;
  // At least one byte, or an empty string at the proper end of the body. Errc::reset if the connection ended before
  // that; Errc::timeout if nothing came before the deadline. After a failure the stream is spent.
  virtual Task<std::string> read_some(TimePoint deadline) = 0;
  // For a reader in no hurry, between two reads: as far as the system can, the next read_some() returns only when much
  // has come, when the stream ends, at its deadline, or once read_on() is called, so that what comes in small pieces
  // wakes us once. False, and nothing has changed, when something is there to be read already.
  virtual bool hold_back() { return false; }
  // Ends it; may be called while read_some() is under way.
  virtual void read_on() {}
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual Task<Response> round_trip(Request request, TimePoint deadline) = 0;
  // Returns when the head of the response is there.
  virtual Task<std::unique_ptr<BodyStream>> open(Request request, TimePoint deadline) = 0;
};

}  // namespace haulout::http
