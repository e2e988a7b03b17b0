#include "agent/process/server_warnings.hpp"

namespace haulout::agent {

void ServerWarnings::see(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (told_.contains(text)) continue;
    if (told_.size() == most_remembered) told_.clear();
    told_.insert(text);
    ++count_;
    tell_(text);
  }
}

}  // namespace haulout::agent
