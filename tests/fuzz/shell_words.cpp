#include "agent/hosts/host_command.hpp"

#include "agent/config/value_checks.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {

static void one(std::string_view input) {
  const auto words = agent::shell_words(input);
  if (!words) return must(!words.error().message().empty(), "an error says what it is");
  const auto again = agent::shell_words(agent::quoted_words(*words));
  must(again && *again == *words, "what is quoted is read again");
}

static const Target target("shell_words", one);

}  // namespace haulout::fuzz
