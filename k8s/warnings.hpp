// Reads the Warning headers of the API server's responses (RFC 7234 5.5): deprecated APIs, and admission policies and
// webhooks that warn. Only code 299 counts, as in client-go. Pure.
#pragma once

#include <string>
#include <vector>

#include "http/message.hpp"

namespace haulout::k8s {

// Returns the texts of the warnings in order, at most 4 KiB per response: leaves out the text that exceeds that, and
// all later ones. Skips the rest of a header after a warning that is not well-formed.
std::vector<std::string> warnings_of(const http::Headers& headers);

}  // namespace haulout::k8s
