// Words that the texts of findings share. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace haulout::audit {

// Splits the message of a diagnosis, "what is wrong; what to do", at its first semicolon. Puts the subject before the
// first part, unless it is empty.
std::pair<std::string, std::string> text_and_way_out(std::string_view subject, const std::string& message);

std::string count_of_pods(std::size_t n);  // "1 pod", "3 pods"

}  // namespace haulout::audit
