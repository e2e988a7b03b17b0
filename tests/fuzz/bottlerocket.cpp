#include "agent/backends/bottlerocket_backend.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  if (const auto version = agent::decode_bottlerocket_version(input)) must(!version->empty(), "a version has a name");
  const auto status = agent::decode_bottlerocket_status(input);
  if (!status) return must(!status.error().message().empty(), "an error says what it is");
  const agent::Pending pending = agent::bottlerocket_answer(*status);
  must(pending.need != agent::Need::yes || !pending.target.empty(), "a reboot is to lead to a version");
}

static const Target target("bottlerocket", one);

}  // namespace haulout::fuzz
