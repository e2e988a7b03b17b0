// Text in XML documents. Pure.
#pragma once

#include <string>
#include <string_view>

namespace haulout {

// Returns the text as the content of an element, or as the value of an attribute in double quotes. Characters that are
// not printable are replaced as printable() replaces them.
std::string xml_escaped(std::string_view text);

}  // namespace haulout
