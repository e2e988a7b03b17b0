#include "base/result.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace haulout {

std::string_view to_string(Errc code) {
  switch (code) {
    case Errc::timeout: return "timeout";
    case Errc::dns: return "dns";
    case Errc::unreachable: return "unreachable";
    case Errc::tls: return "tls";
    case Errc::reset: return "reset";
    case Errc::protocol: return "protocol";
    case Errc::decode: return "decode";
    case Errc::status: return "status";
    case Errc::unavailable: return "unavailable";
    case Errc::invalid: return "invalid";
  }
  return "unknown";
}

bool PeerStatus::has_cause(std::string_view cause_reason) const {
  return std::any_of(causes.begin(), causes.end(), [&](const Cause& cause) { return cause.reason == cause_reason; });
}

Error Error::with_context(std::string_view what) && {
  message_ = std::string(what) + ": " + message_;
  return std::move(*this);
}

void throw_exception_from_error(const Error& error, const boost::source_location& where) {
  std::fprintf(stderr, "bug: a failed Result was used as a value at %s:%u: %s\n", where.file_name(),
               static_cast<unsigned>(where.line()), error.message().c_str());
  std::abort();
}

}  // namespace haulout
