// What the API server warns of, in the Warning headers of its answers (RFC 7234 5.5): deprecated APIs, admission
// policies and webhooks that warn. Only code 299 counts, as with client-go. Pure.
#pragma once

#include <string>
#include <vector>

#include "http/message.hpp"

namespace haulout::k8s {

// The texts, in order; what is not well-formed is left out. An answer holds no more than 4 KiB of them for us.
std::vector<std::string> warnings_of(const http::Headers& headers);

}  // namespace haulout::k8s
