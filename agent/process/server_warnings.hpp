// Reports each different warning of the API server (k8s/warnings.hpp) once. Its memory is bounded: after 200 different
// texts it forgets them all, and may report one again.
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
  // Number of warnings reported so far.
  std::size_t count() const { return count_; }

 private:
  static constexpr std::size_t most_remembered = 200;

  std::function<void(const std::string&)> tell_;
  std::set<std::string> told_;
  std::size_t count_ = 0;
};

}  // namespace haulout::agent
