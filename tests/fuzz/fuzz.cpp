#include "tests/fuzz/fuzz.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace haulout::fuzz {
namespace {

std::map<std::string, Target::Function>& targets() {
  static std::map<std::string, Target::Function> all;
  return all;
}

Target::Function chosen = nullptr;

// libFuzzer starts this program again with its own arguments (-minimize_crash, -merge). This variable tells the new
// process which target was chosen.
constexpr const char* variable = "HAULOUT_FUZZ_TARGET";

}  // namespace

Target::Target(const char* name, Function function) {
  targets().emplace(name, function);
}

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

std::string_view take_line(std::string_view& input) {
  const std::size_t end = input.find('\n');
  const std::string_view line = input.substr(0, end);
  input.remove_prefix(end == std::string_view::npos ? input.size() : end + 1);
  return line;
}

static void choose(int& count, char**& arguments) {
  if (std::getenv(variable) == nullptr && count > 1) {
    setenv(variable, arguments[1], 1);
    arguments[1] = arguments[0];
    --count;
    ++arguments;
  }
  const char* name = std::getenv(variable);
  const auto found = targets().find(name == nullptr ? "" : name);
  if (found == targets().end()) {
    std::fprintf(stderr, "usage: fuzz TARGET [LIBFUZZER ARGUMENTS]; the targets are:");
    for (const auto& [known, function] : targets()) std::fprintf(stderr, " %s", known.c_str());
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  chosen = found->second;
}

}  // namespace haulout::fuzz

// The functions that libFuzzer calls.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  haulout::fuzz::choose(*argc, *argv);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  haulout::fuzz::chosen(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
