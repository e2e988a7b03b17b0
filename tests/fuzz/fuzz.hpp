// A fuzz target is one function that takes any bytes. libFuzzer calls it; what must hold beyond "it ends and touches
// nothing that is not its own" it says with must().
#pragma once

#include <string>
#include <string_view>

namespace haulout::fuzz {

// One per file, called as the file is, by which it is chosen: fuzz NAME [LIBFUZZER ARGUMENTS].
class Target {
 public:
  using Function = void (*)(std::string_view input);
  Target(const char* name, Function function);
};

// Ends the process with `what` when it does not hold: libFuzzer keeps the input.
void must(bool holds, const char* what);

// Cuts the next line off the front of the input, for targets that need more than one text.
std::string_view take_line(std::string_view& input);

}  // namespace haulout::fuzz
