#include "base/xml.hpp"

#include "base/text.hpp"

namespace haulout {

std::string xml_escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  return result;
}

}  // namespace haulout
