#include "agent/backends/debian_backend.hpp"

#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

// The input is two releases, one per line.
static void one(std::string_view input) {
  const std::string_view left = take_line(input);
  const std::string_view right = input;
  must(agent::compare_versions(left, left) == 0, "a version is as new as itself");
  must(agent::compare_versions(left, right) == (0 <=> agent::compare_versions(right, left)),
       "newer one way is older the other way");
  const auto newer = [](std::string_view running, std::string_view other) {
    return agent::newer_kernel(running, {"vmlinuz-" + std::string(other)}).has_value();
  };
  must(!newer(left, left), "no kernel is newer than itself");
  must(!newer(left, right) || !newer(right, left), "only one of two is the newer");
}

static const Target target("kernel_release", one);

}  // namespace haulout::fuzz
