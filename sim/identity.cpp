#include "sim/identity.hpp"

#include <fmt/format.h>

namespace haulout::sim {

Identity service_account(std::string_view ns, std::string_view name) {
  Identity identity;
  identity.username = fmt::format("system:serviceaccount:{}:{}", ns, name);
  identity.groups = {"system:serviceaccounts", fmt::format("system:serviceaccounts:{}", ns), "system:authenticated"};
  return identity;
}

Identity kubelet_of(std::string_view node) {
  Identity identity;
  identity.username = fmt::format("system:node:{}", node);
  identity.groups = {"system:nodes", "system:authenticated"};
  identity.credential_id = "X509SHA256=84c9";
  return identity;
}

Task<http::Response> TokenTransport::round_trip(http::Request request, TimePoint deadline) {
  request.headers.set("Authorization", "Bearer " + token_);
  co_return co_await inner_.round_trip(std::move(request), deadline);
}

Task<std::unique_ptr<http::BodyStream>> TokenTransport::open(http::Request request, TimePoint deadline) {
  request.headers.set("Authorization", "Bearer " + token_);
  co_return co_await inner_.open(std::move(request), deadline);
}

}  // namespace haulout::sim
