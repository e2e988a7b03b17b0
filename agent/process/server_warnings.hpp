// What the API server warns of (k8s/warnings.hpp), told once each. Bounded: after a great many different texts it
// forgets what it has told.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace haulout::agent {

class ServerWarnings {
 public:
  explicit ServerWarnings(std::function<void(const std::string& text)> tell) : tell_(std::move(tell)) {}

  void see(const std::vector<std::string>& texts);
  // So many have been told.
  std::size_t count() const { return count_; }

 private:
  static constexpr std::size_t most_remembered = 200;

  std::function<void(const std::string&)> tell_;
  std::set<std::string> told_;
  std::size_t count_ = 0;
};

}  // namespace haulout::agent
