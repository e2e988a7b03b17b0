// A fuzz target is one function that accepts any bytes. libFuzzer calls it and checks that it ends and touches no
// foreign memory. The function uses must() for everything else that must hold.
#pragma once

#include <string>
#include <string_view>

namespace haulout::fuzz {

// Registers the target of a file under the file's name. The command line selects it: fuzz NAME [LIBFUZZER ARGUMENTS].
class Target {
 public:
  using Function = void (*)(std::string_view input);
  Target(const char* name, Function function);
};

// Ends the process with the message `what` if `holds` is false. libFuzzer then keeps the input.
void must(bool holds, const char* what);

// Cuts the next line off the front of the input. For targets that need more than one text.
std::string_view take_line(std::string_view& input);

}  // namespace haulout::fuzz
